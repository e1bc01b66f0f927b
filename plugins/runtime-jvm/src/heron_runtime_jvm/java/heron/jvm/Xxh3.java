package heron.jvm;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** XXH3-64 with the seed 0, by its published specification (doc/xxhash_spec.md of github.com/Cyan4973/xxHash). */
final class Xxh3 {
    private static final long PRIME32_1 = 0x9E3779B1L;
    private static final long PRIME32_2 = 0x85EBCA77L;
    private static final long PRIME32_3 = 0xC2B2AE3DL;
    private static final long PRIME64_1 = 0x9E3779B185EBCA87L;
    private static final long PRIME64_2 = 0xC2B2AE3D27D4EB4FL;
    private static final long PRIME64_3 = 0x165667B19E3779F9L;
    private static final long PRIME64_4 = 0x85EBCA77C2B2AE63L;
    private static final long PRIME64_5 = 0x27D4EB2F165667C5L;
    private static final long PRIME_MX1 = 0x165667919E3779F9L;
    private static final long PRIME_MX2 = 0x9FB21C651E98DF25L;
    private static final ByteBuffer SECRET = secret(
        "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
        + "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
        + "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb17"
        + "0ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e");
    private static final int STRIPE = 64;
    private static final int BLOCK = 1024;

    private final ByteBuffer in;
    private final int length;

    private Xxh3(byte[] bytes) {
        in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        length = bytes.length;
    }

    static long hash(byte[] bytes) {
        Xxh3 hash = new Xxh3(bytes);
        return bytes.length <= 16 ? hash.short16() : bytes.length <= 240 ? hash.middle240() : hash.large();
    }

    private long short16() {
        if (length > 8) {
            long low = in.getLong(0) ^ secret(24) ^ secret(32);
            long high = in.getLong(length - 8) ^ secret(40) ^ secret(48);
            return avalanche(length + Long.reverseBytes(low) + high + folded(low, high));
        }
        if (length >= 4) {
            long both = (in.getInt(length - 4) & 0xffffffffL) + ((long) in.getInt(0) << 32);
            long mixed = both ^ secret(8) ^ secret(16);
            mixed = (mixed ^ Long.rotateLeft(mixed, 49) ^ Long.rotateLeft(mixed, 24)) * PRIME_MX2;
            mixed = (mixed ^ ((mixed >>> 35) + length)) * PRIME_MX2;
            return mixed ^ (mixed >>> 28);
        }
        long mixed = secret(56) ^ secret(64);
        if (length > 0) {
            int some = (in.get(0) & 0xff) << 16 | in.get(length >> 1) << 24 | in.get(length - 1) & 0xff | length << 8;
            mixed = (some ^ SECRET.getInt(0) ^ SECRET.getInt(4)) & 0xffffffffL;
        }
        mixed = (mixed ^ (mixed >>> 33)) * PRIME64_2;
        mixed = (mixed ^ (mixed >>> 29)) * PRIME64_3;
        return mixed ^ (mixed >>> 32);
    }

    private long middle240() {
        long sum = length * PRIME64_1;
        if (length <= 128) {
            for (int i = (length - 1) / 32; i >= 0; i--) {
                sum += mixed(16 * i, 32 * i) + mixed(length - 16 * (i + 1), 32 * i + 16);
            }
            return avalanche(sum);
        }
        for (int i = 0; i < 8; i++) {
            sum += mixed(16 * i, 16 * i);
        }
        sum = avalanche(sum);
        for (int i = 8; i < length / 16; i++) {
            sum += mixed(16 * i, 16 * (i - 8) + 3);
        }
        return avalanche(sum + mixed(length - 16, 119));
    }

    private long large() {
        long[] lanes = {PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1};
        for (int at = 0; at < length - STRIPE; at += STRIPE) {
            accumulate(lanes, at, at % BLOCK / 8);
            if (at % BLOCK == BLOCK - STRIPE) {
                for (int i = 0; i < 8; i++) {
                    lanes[i] = (lanes[i] ^ (lanes[i] >>> 47) ^ secret(128 + 8 * i)) * PRIME32_1;
                }
            }
        }
        accumulate(lanes, length - STRIPE, 121);
        long sum = length * PRIME64_1;
        for (int i = 0; i < 4; i++) {
            sum += folded(lanes[2 * i] ^ secret(11 + 16 * i), lanes[2 * i + 1] ^ secret(19 + 16 * i));
        }
        return avalanche(sum);
    }

    private void accumulate(long[] lanes, int at, int ofSecret) {
        for (int i = 0; i < 8; i++) {
            long value = in.getLong(at + 8 * i);
            long keyed = value ^ secret(ofSecret + 8 * i);
            lanes[i ^ 1] += value;
            lanes[i] += (keyed & 0xffffffffL) * (keyed >>> 32);
        }
    }

    private long mixed(int at, int ofSecret) {
        return folded(in.getLong(at) ^ secret(ofSecret), in.getLong(at + 8) ^ secret(ofSecret + 8));
    }

    /** The halves of the unsigned product of 128 bits, combined. */
    private static long folded(long one, long other) {
        long high = Math.multiplyHigh(one, other) + ((one >> 63) & other) + ((other >> 63) & one);
        return one * other ^ high;
    }

    private static long avalanche(long hash) {
        long mixed = (hash ^ (hash >>> 37)) * PRIME_MX1;
        return mixed ^ (mixed >>> 32);
    }

    private static long secret(int at) {
        return SECRET.getLong(at);
    }

    private static ByteBuffer secret(String hex) {
        ByteBuffer secret = ByteBuffer.allocate(hex.length() / 2).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < hex.length(); i += 2) {
            secret.put((byte) Integer.parseInt(hex.substring(i, i + 2), 16));
        }
        return secret;
    }
}
