import java.util.Random;

/**
 * The events of Nexmark, as the generator of Apache Beam makes them in its default configuration with one generator:
 * an event is a function of its number, and 10,000 events have happened in a second.
 */
public final class NexmarkEvents {
    static final int PER_GROUP = 50;
    static final int PERSONS = 1;
    static final int AUCTIONS = 3;
    static final long FIRST_ID = 1000;
    static final long BASE_MS = 1_436_918_400_000L; // 2015-07-15T00:00:00Z
    static final long DELAY_US = 100;

    private static final int HOT_AUCTION = 2;
    private static final int HOT_SELLER = 4;
    private static final int HOT_BIDDER = 4;
    private static final int HOT_EVERY = 100;
    private static final int ACTIVE_PERSONS = 1000;
    private static final int OPEN_AUCTIONS = 100;
    private static final int LEAD = 10;
    private static final int PERSON_BYTES = 200;
    private static final int AUCTION_BYTES = 500;
    private static final int BID_BYTES = 100;
    private static final String[] STATES = "AZ,CA,ID,OR,WA,WY".split(",");
    private static final String[] CITIES =
        "Phoenix,Los Angeles,San Francisco,Boise,Portland,Bend,Redmond,Seattle,Kent,Cheyenne".split(",");
    private static final String[] FIRST = "Peter,Paul,Luke,John,Saul,Vicky,Kate,Julie,Sarah,Deiter,Walter".split(",");
    private static final String[] LAST = "Shultz,Abrams,Spencer,White,Bartels,Walton,Smith,Jones,Noris".split(",");

    private NexmarkEvents() {
    }

    /** A person, an auction or a bid, at a time in milliseconds since 1970. */
    public abstract static class Event {
        public long time;

        /** The same event, so much later. */
        abstract Event later(long ms);
    }

    /** Someone has registered. */
    public static final class Person extends Event {
        public long id;
        public String name;
        public String email;
        public String creditCard;
        public String city;
        public String state;
        public String extra;

        @Override
        Event later(long ms) {
            Person made = new Person();
            made.time = time + ms;
            made.id = id;
            made.name = name;
            made.email = email;
            made.creditCard = creditCard;
            made.city = city;
            made.state = state;
            made.extra = extra;
            return made;
        }
    }

    /** An auction has begun. */
    public static final class Auction extends Event {
        public long id;
        public String name;
        public String description;
        public long initialBid;
        public long reserve;
        public long expires;
        public long seller;
        public long category;
        public String extra;

        @Override
        Event later(long ms) {
            Auction made = new Auction();
            made.time = time + ms;
            made.id = id;
            made.name = name;
            made.description = description;
            made.initialBid = initialBid;
            made.reserve = reserve;
            made.expires = expires + ms;
            made.seller = seller;
            made.category = category;
            made.extra = extra;
            return made;
        }
    }

    /** Someone bids. */
    public static final class Bid extends Event {
        public long auction;
        public long bidder;
        public long price;
        public String extra;

        @Override
        Event later(long ms) {
            Bid made = new Bid();
            made.time = time + ms;
            made.auction = auction;
            made.bidder = bidder;
            made.price = price;
            made.extra = extra;
            return made;
        }
    }

    /** The first events. */
    public static Event[] first(int count) {
        Event[] events = new Event[count];
        for (int number = 0; number < count; number++) {
            events[number] = event(number);
        }
        return events;
    }

    /** The event with a number. */
    public static Event event(long number) {
        Random random = new Random(number);
        long place = number % PER_GROUP;
        Event made = place < PERSONS ? person(number, random)
            : place < PERSONS + AUCTIONS ? auction(number, random) : bid(number, random);
        made.time = timeOf(number);
        return made;
    }

    private static long timeOf(long number) {
        return BASE_MS + number * DELAY_US / 1000;
    }

    private static Person person(long number, Random random) {
        Person made = new Person();
        made.id = newestPerson(number) + FIRST_ID;
        made.name = FIRST[random.nextInt(FIRST.length)] + " " + LAST[random.nextInt(LAST.length)];
        made.email = text(random, 7) + "@" + text(random, 5) + ".com";
        StringBuilder card = new StringBuilder();
        for (int part = 0; part < 4; part++) {
            card.append(part == 0 ? "" : " ").append(String.format("%04d", random.nextInt(10_000)));
        }
        made.creditCard = card.toString();
        made.city = CITIES[random.nextInt(CITIES.length)];
        made.state = STATES[random.nextInt(STATES.length)];
        int size = 8 + made.name.length() + made.email.length() + made.creditCard.length() + made.city.length()
            + made.state.length();
        made.extra = extra(random, size, PERSON_BYTES);
        return made;
    }

    private static Auction auction(long number, Random random) {
        Auction made = new Auction();
        made.id = newestAuction(number) + FIRST_ID;
        boolean hot = random.nextInt(HOT_SELLER) > 0;
        made.seller = FIRST_ID + (hot ? newestPerson(number) / HOT_EVERY * HOT_EVERY : anyPerson(number, random));
        made.category = 10 + random.nextInt(5);
        made.initialBid = price(random);
        long untilThen = timeOf(number + (long) OPEN_AUCTIONS * PER_GROUP / AUCTIONS) - timeOf(number);
        made.expires = timeOf(number) + 1 + random.nextInt((int) Math.max(2 * untilThen, 1));
        made.name = text(random, 20);
        made.description = text(random, 100);
        made.reserve = made.initialBid + price(random);
        made.extra = extra(random, 48 + made.name.length() + made.description.length(), AUCTION_BYTES);
        return made;
    }

    private static Bid bid(long number, Random random) {
        Bid made = new Bid();
        boolean hot = random.nextInt(HOT_AUCTION) > 0;
        made.auction = FIRST_ID + (hot ? newestAuction(number) / HOT_EVERY * HOT_EVERY : anyAuction(number, random));
        hot = random.nextInt(HOT_BIDDER) > 0;
        made.bidder = FIRST_ID + (hot ? newestPerson(number) / HOT_EVERY * HOT_EVERY + 1 : anyPerson(number, random));
        made.price = price(random);
        made.extra = extra(random, 32, BID_BYTES);
        return made;
    }

    /** The last person up to this event, from 0. */
    private static long newestPerson(long number) {
        return number / PER_GROUP * PERSONS + Math.min(number % PER_GROUP, PERSONS - 1);
    }

    /** The last auction up to this event, from 0; -1 before the first. */
    private static long newestAuction(long number) {
        long place = number % PER_GROUP - PERSONS;
        return number / PER_GROUP * AUCTIONS + Math.max(-1, Math.min(place, AUCTIONS - 1));
    }

    private static long anyPerson(long number, Random random) {
        long known = newestPerson(number) + 1;
        long active = Math.min(known, ACTIVE_PERSONS);
        return known - active + random.nextInt((int) active + LEAD);
    }

    private static long anyAuction(long number, Random random) {
        long newest = newestAuction(number);
        long oldest = Math.max(newest - OPEN_AUCTIONS, 0);
        return oldest + random.nextInt((int) (newest - oldest) + 1 + LEAD);
    }

    private static long price(Random random) {
        return Math.round(Math.pow(10, 6 * random.nextDouble()) * 100);
    }

    private static String text(Random random, int limit) {
        StringBuilder made = new StringBuilder();
        for (int left = 3 + random.nextInt(limit - 3); left > 0; left--) {
            made.append(random.nextInt(13) == 0 ? ' ' : (char) ('a' + random.nextInt(26)));
        }
        return made.toString().trim();
    }

    /** Fills an event to its mean size. Six characters are the digits of one random number, which may be negative. */
    private static String extra(Random random, int size, int mean) {
        if (size > mean) {
            return "";
        }
        int around = (int) Math.round((mean - size) * 0.2);
        int length = mean - size - around + (around == 0 ? 0 : random.nextInt(2 * around));
        StringBuilder made = new StringBuilder(length);
        for (int at = 0, digits = 0; at < length; at++, digits /= 26) {
            digits = at % 6 == 0 ? random.nextInt() : digits;
            made.append((char) ('a' + digits % 26));
        }
        return made.toString();
    }
}
