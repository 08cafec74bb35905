package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// What is committed is read, and what is aborted is not; while it is open, it can be looked at.
func transactions(ctx context.Context, it *broker) error {
	topic, err := it.topic(ctx, "transactions", 1)
	if err != nil {
		return err
	}
	name := fresh("transaction")
	producer, err := it.client(kgo.TransactionalID(name))
	if err != nil {
		return err
	}
	defer producer.Close()
	for round, commit := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		if err := producer.BeginTransaction(); err != nil {
			return err
		}
		for number := range 10 {
			value := fmt.Sprintf("%d %d", round, number)
			record := &kgo.Record{Topic: topic, Value: []byte(value)}
			if err := producer.ProduceSync(ctx, record).FirstErr(); err != nil {
				return err
			}
		}
		if err := open(ctx, it, topic, name); err != nil {
			return err
		}
		if err := producer.EndTransaction(ctx, commit); err != nil {
			return err
		}
	}
	if err := seen(ctx, it, topic, 20, kgo.ReadCommitted()); err != nil {
		return err
	}
	return seen(ctx, it, topic, 30, kgo.ReadUncommitted())
}

// Whether the transaction is told of as one that goes on, in this topic.
func open(ctx context.Context, it *broker, topic, name string) error {
	listed, err := it.admin.ListTransactions(ctx, nil, []string{"Ongoing"})
	if err != nil {
		return err
	}
	described, err := it.admin.DescribeTransactions(ctx, name)
	if err != nil {
		return err
	}
	transaction := described[name]
	isThere := transaction.Topics.Lookup(topic, 0)
	if _, isListed := listed[name]; !isListed || transaction.State != "Ongoing" || !isThere {
		return fmt.Errorf("%s is told of as %+v", name, transaction)
	}
	producers, err := it.admin.DescribeProducers(ctx, kadm.TopicsSet{topic: {0: {}}})
	if err != nil {
		return err
	}
	producer := producers[topic].Partitions[0].ActiveProducers[transaction.ProducerID]
	if producer.CurrentTxnStartOffset < 0 {
		return fmt.Errorf("the producer of %s has begun nothing: %+v", name, producer)
	}
	return nil
}

func seen(ctx context.Context, it *broker, topic string, count int, level kgo.IsolationLevel) error {
	client, err := it.client(kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(level),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = read(ctx, client, count)
	return err
}

// Whoever takes a transactional id fences the one before.
func fencing(ctx context.Context, it *broker) error {
	topic, err := it.topic(ctx, "fencing", 1)
	if err != nil {
		return err
	}
	name := fresh("transaction")
	first, err := it.client(kgo.TransactionalID(name))
	if err != nil {
		return err
	}
	defer first.Close()
	if err := first.BeginTransaction(); err != nil {
		return err
	}
	if err := first.ProduceSync(ctx, records(topic, 1)...).FirstErr(); err != nil {
		return err
	}
	second, err := it.client(kgo.TransactionalID(name))
	if err != nil {
		return err
	}
	defer second.Close()
	if _, _, err := second.ProducerID(ctx); err != nil {
		return err
	}
	fenced := first.EndTransaction(ctx, kgo.TryCommit)
	if !errors.Is(fenced, kerr.ProducerFenced) && !errors.Is(fenced, kerr.InvalidProducerEpoch) {
		return fmt.Errorf("the first one commits: %v", fenced)
	}
	if err := second.BeginTransaction(); err != nil {
		return err
	}
	if err := second.ProduceSync(ctx, records(topic, 5)...).FirstErr(); err != nil {
		return err
	}
	if err := second.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return err
	}
	return seen(ctx, it, topic, 5, kgo.ReadCommitted())
}

// A consumer that writes in transactions what it has read, two of them at once, each of which comes later or
// goes earlier than the other.
func exactlyOnce(ctx context.Context, it *broker) error {
	source, err := it.topic(ctx, "source", 4)
	if err != nil {
		return err
	}
	target, err := it.topic(ctx, "target", 2)
	if err != nil {
		return err
	}
	// Small batches make for many transactions.
	if err := it.produce(ctx, source, 2000, kgo.ProducerBatchMaxBytes(1024)); err != nil {
		return err
	}
	name := fresh("group")
	long, stop := context.WithCancel(ctx)
	short, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	ended := make(chan error, 2)
	for _, life := range []context.Context{short, long} {
		go func() { ended <- copyAll(life, it, name, source, target) }()
	}
	err = seen(ctx, it, target, 2000, kgo.ReadCommitted())
	stop()
	return errors.Join(err, <-ended, <-ended)
}

// Copies until its life is over.
func copyAll(life context.Context, it *broker, name, source, target string) error {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(it.address), kgo.TransactionalID(fresh("copy")), kgo.ConsumerGroup(name),
		kgo.ConsumeTopics(source), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(),
		kgo.FetchMaxPartitionBytes(2048))
	if err != nil {
		return err
	}
	defer session.Close()
	for life.Err() == nil {
		fetches := session.PollFetches(life)
		if life.Err() != nil {
			return nil
		}
		if err := fetches.Err(); err != nil {
			return err
		}
		if err := session.Begin(); err != nil {
			return err
		}
		for _, record := range fetches.Records() {
			session.Produce(context.Background(), &kgo.Record{Topic: target, Key: record.Key, Value: record.Value}, nil)
		}
		if _, err := session.End(context.Background(), kgo.TryCommit); err != nil {
			return err
		}
	}
	return nil
}
