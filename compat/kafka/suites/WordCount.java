// Kafka Streams, exactly once: words are counted by an application that is closed and started again, once
// with its local state and once without. java WordCount.java HOST:PORT, with the jars in CLASSPATH.

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

public class WordCount {
    static final int PARTITIONS = 3;
    static final int WORDS = 50;
    static final int LINES_A_ROUND = 2_000;
    static final int WORDS_A_LINE = 5;
    static final Duration LIMIT = Duration.ofMinutes(4);

    final String broker;
    final String run = UUID.randomUUID().toString().substring(0, 8);
    final String lines = "lines-" + run;
    final String counts = "counts-" + run;
    final Map<String, Long> expected = new HashMap<>();
    final Map<String, Long> seen = new HashMap<>();
    int produced;

    WordCount(String broker) {
        this.broker = broker;
    }

    public static void main(String[] args) throws Exception {
        new WordCount(args[0]).run();
    }

    void run() throws Exception {
        try (var admin = Admin.create(Map.of("bootstrap.servers", broker))) {
            var topics = List.of(lines, counts).stream().map(name -> new NewTopic(name, PARTITIONS, (short) 1));
            admin.createTopics(topics.toList()).all().get();
        }
        Path state = Files.createTempDirectory("word-count-");
        try (var consumer = consumer()) {
            for (int round = 0; round < 3; round++) {
                if (round == 2) {
                    delete(state);
                }
                produce();
                var streams = new KafkaStreams(topology(), properties(state));
                var failure = new Throwable[1];
                streams.setUncaughtExceptionHandler(error -> {
                    failure[0] = error;
                    return org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler
                        .StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
                });
                streams.start();
                follow(consumer, failure);
                check(streams.close(Duration.ofMinutes(1)), "the application does not close");
            }
        } finally {
            delete(state);
        }
        System.out.println(produced + " words counted exactly once, by an application started 3 times");
    }

    org.apache.kafka.streams.Topology topology() {
        var builder = new StreamsBuilder();
        builder.<String, String>stream(lines)
            .flatMapValues(line -> List.of(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.as("counts"))
            .toStream()
            .to(counts, Produced.with(Serdes.String(), Serdes.Long()));
        return builder.build();
    }

    Properties properties(Path state) {
        var properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "word-count-" + run);
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, broker);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        // Every count is seen, not only the newest.
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        // Members that were closed do not hold up those that are started next.
        properties.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 6_000);
        properties.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        return properties;
    }

    void produce() throws Exception {
        Map<String, Object> properties = Map.of("bootstrap.servers", broker);
        try (var producer = new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            for (int line = 0; line < LINES_A_ROUND; line++) {
                var words = new ArrayList<String>();
                for (int word = 0; word < WORDS_A_LINE; word++) {
                    words.add("word-" + produced++ * 7 % WORDS);
                }
                words.forEach(word -> expected.merge(word, 1L, Long::sum));
                producer.send(new ProducerRecord<>(lines, "key-" + line, String.join(" ", words)));
            }
        }
    }

    KafkaConsumer<String, Long> consumer() {
        Map<String, Object> properties = Map.of("bootstrap.servers", broker, "isolation.level", "read_committed");
        var consumer = new KafkaConsumer<>(properties, new StringDeserializer(), new LongDeserializer());
        var partitions = IntStream.range(0, PARTITIONS).mapToObj(index -> new TopicPartition(counts, index)).toList();
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        return consumer;
    }

    /** Reads counts until all are as expected: each word is counted up by one, and never twice. */
    void follow(KafkaConsumer<String, Long> consumer, Throwable[] failure) {
        long until = System.nanoTime() + LIMIT.toNanos();
        while (!seen.equals(expected)) {
            check(failure[0] == null, "the application failed: " + failure[0]);
            check(System.nanoTime() < until, "not counted in time: " + seen);
            for (var record : consumer.poll(Duration.ofMillis(200))) {
                long next = seen.merge(record.key(), 1L, Long::sum);
                check(next == record.value(), record.key() + " is " + record.value() + " and not " + next);
            }
        }
    }

    static void check(boolean is, String message) {
        if (!is) {
            System.err.println(message);
            Runtime.getRuntime().halt(1);
        }
    }

    static void delete(Path directory) throws Exception {
        if (!Files.exists(directory)) {
            return;
        }
        try (var paths = Files.walk(directory)) {
            for (var path : paths.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }
}
