// A producer and a group's copy job on Apache Kafka's own clients, with their defaults.
//
//     java CopyJob.java SERVERS SOURCE TARGET
//
// What the lines mean is in report.py.

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class CopyJob {
    static final int PARTITIONS = 3;
    static final long PAUSE_MS = 5;
    static final long END_LIMIT_MS = 120_000;

    static final Set<Integer> acked = ConcurrentHashMap.newKeySet();
    static final Set<Integer> copied = ConcurrentHashMap.newKeySet();
    static volatile boolean isOver;
    static volatile boolean isProduced;

    static String servers, source, target;

    interface Job {
        void run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        servers = args[0];
        source = args[1];
        target = args[2];
        start(() -> {
            while (System.in.read() >= 0) {}
            isOver = true;
        });
        Thread copying = start(() -> guarded("copy", CopyJob::copy));
        guarded("produce", CopyJob::produce);
        isProduced = true;
        copying.join(END_LIMIT_MS);
        if (copying.isAlive()) say("error copy: " + (acked.size() - copied.size()) + " records are not copied");
        ask();
        // A thread that hangs does not hold up the end.
        Runtime.getRuntime().halt(0);
    }

    static Thread start(Job job) {
        Thread thread = new Thread(() -> guarded("thread", job));
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    static void guarded(String what, Job job) {
        try {
            job.run();
        } catch (Exception error) {
            say("error " + what + ": " + error);
        }
    }

    static synchronized void say(String line) {
        System.out.println(line.replace('\n', ' '));
        System.out.flush();
    }

    static KafkaProducer<String, String> producer(Map<String, Object> settings) {
        Properties all = new Properties();
        all.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        all.putAll(settings);
        return new KafkaProducer<>(all, new StringSerializer(), new StringSerializer());
    }

    static void produce() throws Exception {
        try (KafkaProducer<String, String> producer = producer(Map.of())) {
            for (int next = 0; !isOver; next++) {
                int number = next;
                var record = new ProducerRecord<String, String>(source, number % PARTITIONS, null, "" + number);
                producer.send(record, (place, error) -> {
                    if (error == null) {
                        acked.add(number);
                        say("acked " + number);
                    } else {
                        say("error record " + number + ": " + error);
                    }
                });
                Thread.sleep(PAUSE_MS);
            }
            producer.flush();
        }
    }

    static void copy() throws Exception {
        Properties settings = new Properties();
        settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        settings.put(ConsumerConfig.GROUP_ID_CONFIG, "copies-" + target);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, "false");
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
                var producer = producer(Map.of())) {
            consumer.subscribe(List.of(source));
            while (!isProduced || !copied.containsAll(acked)) {
                List<Future<RecordMetadata>> sent = new ArrayList<>();
                List<Integer> numbers = new ArrayList<>();
                for (var record : consumer.poll(Duration.ofMillis(200))) {
                    sent.add(producer.send(
                            new ProducerRecord<>(target, record.partition(), null, record.value())));
                    numbers.add(Integer.parseInt(record.value()));
                }
                producer.flush();
                for (var one : sent) one.get();
                if (!numbers.isEmpty()) {
                    consumer.commitSync();
                    copied.addAll(numbers);
                    say("copied " + copied.size());
                }
            }
        }
    }

    static void ask() {
        String id = "transactions-" + target;
        try (var producer = producer(Map.of(ProducerConfig.TRANSACTIONAL_ID_CONFIG, id))) {
            producer.initTransactions();
            say("error transaction: it is not refused");
        } catch (Exception error) {
            say("refused " + error);
        }
    }
}
