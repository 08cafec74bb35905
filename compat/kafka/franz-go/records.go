package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Every compression arrives as it was sent, where it was said to be.
func produce(ctx context.Context, it *broker) error {
	for name, codec := range map[string]kgo.CompressionCodec{
		"none":   kgo.NoCompression(),
		"gzip":   kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(),
		"lz4":    kgo.Lz4Compression(),
		"zstd":   kgo.ZstdCompression(),
	} {
		if err := compressed(ctx, it, codec); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func compressed(ctx context.Context, it *broker, codec kgo.CompressionCodec) error {
	topic, err := it.topic(ctx, "produce", 3)
	if err != nil {
		return err
	}
	client, err := it.client(kgo.ProducerBatchCompression(codec), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer client.Close()
	sent := records(topic, 1000)
	if err := client.ProduceSync(ctx, sent...).FirstErr(); err != nil {
		return err
	}
	found, err := read(ctx, client, len(sent))
	if err != nil {
		return err
	}
	for _, record := range sent {
		other := found[string(record.Value)]
		if other == nil || other.Partition != record.Partition || other.Offset != record.Offset ||
			string(other.Key) != string(record.Key) {
			return fmt.Errorf("%q is not where it was said to be", record.Value)
		}
	}
	return nil
}

// A producer is idempotent by default: it has an id, and what it produces is dense.
func idempotent(ctx context.Context, it *broker) error {
	topic, err := it.topic(ctx, "idempotent", 1)
	if err != nil {
		return err
	}
	client, err := it.client()
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.ProduceSync(ctx, records(topic, 5000)...).FirstErr(); err != nil {
		return err
	}
	id, epoch, err := client.ProducerID(ctx)
	if err != nil || id < 0 || epoch < 0 {
		return fmt.Errorf("id %d, epoch %d: %v", id, epoch, err)
	}
	ends, err := it.admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return err
	}
	if end, _ := ends.Lookup(topic, 0); end.Offset != 5000 {
		return fmt.Errorf("5000 records end at %d", end.Offset)
	}
	described, err := it.admin.DescribeProducers(ctx, kadm.TopicsSet{topic: {0: {}}})
	if err != nil {
		return err
	}
	known := described[topic].Partitions[0].ActiveProducers
	if producer, isKnown := known[id]; !isKnown || producer.LastSequence != 4999 {
		return fmt.Errorf("producer %d is not among %v", id, known)
	}
	return nil
}

// Where a partition begins, ends, and was at a time; what is before an offset goes.
func offsets(ctx context.Context, it *broker) error {
	topic, err := it.topic(ctx, "offsets", 1)
	if err != nil {
		return err
	}
	if err := it.produce(ctx, topic, 100); err != nil {
		return err
	}
	is := func(what string, offset int64, listed kadm.ListedOffsets, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if found, _ := listed.Lookup(topic, 0); found.Err != nil || found.Offset != offset {
			return fmt.Errorf("%s: %d, and not %d (%v)", what, found.Offset, offset, found.Err)
		}
		return nil
	}
	listed, err := it.admin.ListStartOffsets(ctx, topic)
	if err := is("the start", 0, listed, err); err != nil {
		return err
	}
	listed, err = it.admin.ListOffsetsAfterMilli(ctx, 1, topic)
	if err := is("the first after a time", 0, listed, err); err != nil {
		return err
	}
	deleted, err := it.admin.DeleteRecords(ctx, kadm.Offsets{topic: {0: {Topic: topic, At: 40}}})
	if err != nil {
		return err
	}
	if gone, _ := deleted.Lookup(topic, 0); gone.Err != nil || gone.LowWatermark != 40 {
		return fmt.Errorf("deleted up to %d: %v", gone.LowWatermark, gone.Err)
	}
	listed, err = it.admin.ListStartOffsets(ctx, topic)
	if err := is("the start of what is left", 40, listed, err); err != nil {
		return err
	}
	epoch := listed[topic][0].LeaderEpoch
	epochs, err := it.admin.OffsetForLeaderEpoch(ctx, kadm.OffsetForLeaderEpochRequest{topic: {0: epoch}})
	if err != nil {
		return err
	}
	if found := epochs[topic][0]; found.Err != nil || found.EndOffset != 100 {
		return fmt.Errorf("the leader's epoch ends at %d: %v", found.EndOffset, found.Err)
	}
	return nil
}
