import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Asks for the consumer protocol of KIP-848, and prints how the broker refuses it: HOST:PORT TOPIC. */
class ConsumerProtocol {
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    public static void main(String[] arguments) {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", arguments[0],
                "group.id", "protocol-" + System.nanoTime(),
                "group.protocol", "consumer");
        var text = new StringDeserializer();
        try (var consumer = new KafkaConsumer<>(settings, text, text)) {
            consumer.subscribe(List.of(arguments[1]));
            long started = System.nanoTime();
            try {
                while (System.nanoTime() - started < PATIENCE.toNanos()) {
                    consumer.poll(PATIENCE);
                }
                System.out.println("no error");
            } catch (UnsupportedVersionException refused) {
                System.out.println("refused: " + refused.getMessage());
            }
        }
    }
}
