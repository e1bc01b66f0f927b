import java.util.HashMap;
import java.util.Map;

/** The events of the Yahoo streaming benchmark, as bench/topology-files/ad_events.py makes them: each is a function of its number. */
public final class AdEvents {
    static final int ADS = 1000;
    static final int ADS_OF_CAMPAIGN = 10;
    static final long BASE_MS = 1_436_918_400_000L; // 2015-07-15T00:00:00Z
    static final long DELAY_US = 100;

    private static final String[] AD_TYPES = {"banner", "modal", "sponsored-search", "mail", "mobile"};
    private static final String[] EVENT_TYPES = {"view", "click", "purchase"};

    private AdEvents() {
    }

    /** Someone has seen an ad, clicked on it, or bought; the time is in milliseconds since 1970. */
    public static final class AdEvent {
        public String user;
        public String page;
        public String ad;
        public String adType;
        public String eventType;
        public long time;
        public String address;

        /** The same event, so much later. */
        AdEvent later(long ms) {
            AdEvent made = new AdEvent();
            made.user = user;
            made.page = page;
            made.ad = ad;
            made.adType = adType;
            made.eventType = eventType;
            made.time = time + ms;
            made.address = address;
            return made;
        }
    }

    /** The first events. */
    public static AdEvent[] first(int count) {
        String[] users = ids(1, 100);
        String[] pages = ids(2, 100);
        String[] ads = ids(3, ADS);
        AdEvent[] events = new AdEvent[count];
        for (int number = 0; number < count; number++) {
            long mixed = mix(number);
            AdEvent made = new AdEvent();
            made.user = users[(int) (mixed & 0xFFFF) % users.length];
            made.page = pages[(int) (mixed >>> 16 & 0xFFFF) % pages.length];
            made.ad = ads[(int) (mixed >>> 32 & 0xFFFF) % ADS];
            made.adType = AD_TYPES[(int) (mixed >>> 48 & 0xFF) % AD_TYPES.length];
            made.eventType = EVENT_TYPES[(int) (mixed >>> 56) % EVENT_TYPES.length];
            made.time = BASE_MS + number * DELAY_US / 1000;
            made.address = "1.2.3.4";
            events[number] = made;
        }
        return events;
    }

    /** The campaign of each ad. */
    public static Map<String, String> campaigns() {
        String[] ads = ids(3, ADS);
        String[] campaigns = ids(4, ADS / ADS_OF_CAMPAIGN);
        Map<String, String> made = new HashMap<>();
        for (int ad = 0; ad < ADS; ad++) {
            made.put(ads[ad], campaigns[ad / ADS_OF_CAMPAIGN]);
        }
        return made;
    }

    private static String[] ids(int kind, int count) {
        String[] made = new String[count];
        for (int number = 0; number < count; number++) {
            made[number] = String.format("%08x-0000-4000-8000-%012x", kind, number);
        }
        return made;
    }

    /** The output function of SplitMix64. */
    private static long mix(long number) {
        long mixed = (number + 1) * 0x9E3779B97F4A7C15L;
        mixed = (mixed ^ mixed >>> 30) * 0xBF58476D1CE4E5B9L;
        mixed = (mixed ^ mixed >>> 27) * 0x94D049BB133111EBL;
        return mixed ^ mixed >>> 31;
    }
}
