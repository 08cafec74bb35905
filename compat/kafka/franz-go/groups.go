package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Groups rebalance cooperatively by default.
func group(ctx context.Context, it *broker) error {
	return shared(ctx, it)
}

// And as they did before.
func eager(ctx context.Context, it *broker) error {
	return shared(ctx, it, kgo.Balancers(kgo.RangeBalancer()))
}

// What a member has been given.
type share struct {
	mutex      sync.Mutex
	partitions map[int32]bool
}

func (it *share) size() int {
	it.mutex.Lock()
	defer it.mutex.Unlock()
	return len(it.partitions)
}

func (it *share) set(partitions []int32, isMine bool) {
	it.mutex.Lock()
	defer it.mutex.Unlock()
	for _, partition := range partitions {
		if isMine {
			it.partitions[partition] = true
		} else {
			delete(it.partitions, partition)
		}
	}
}

// A member of a group, and what it has.
func member(it *broker, topic, name string, options ...kgo.Opt) (*kgo.Client, *share, error) {
	mine := &share{partitions: map[int32]bool{}}
	took := func(isMine bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
			mine.set(topics[topic], isMine)
		}
	}
	client, err := it.client(append(options,
		kgo.ConsumerGroup(name), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(took(true)), kgo.OnPartitionsRevoked(took(false)),
		kgo.OnPartitionsLost(took(false)))...)
	return client, mine, err
}

// A group shares what there is, goes on where it was, and shares anew when somebody comes or goes.
func shared(ctx context.Context, it *broker, options ...kgo.Opt) error {
	topic, err := it.topic(ctx, "group", 4)
	if err != nil {
		return err
	}
	name := fresh("group")
	if err := it.produce(ctx, topic, 1000); err != nil {
		return err
	}
	first, ofFirst, err := member(it, topic, name, options...)
	if err != nil {
		return err
	}
	defer first.Close()
	if _, err := read(ctx, first, 1000); err != nil {
		return err
	}
	if err := first.CommitUncommittedOffsets(ctx); err != nil {
		return err
	}
	second, ofSecond, err := member(it, topic, name, options...)
	if err != nil {
		return err
	}
	defer second.Close()
	for ofFirst.size() != 2 || ofSecond.size() != 2 {
		if err := nothing(ctx, first, second); err != nil {
			return fmt.Errorf("%d and %d of 4: %w", ofFirst.size(), ofSecond.size(), err)
		}
	}
	if err := described(ctx, it, name, 2); err != nil {
		return err
	}
	second.LeaveGroup()
	for ofFirst.size() != 4 {
		if err := nothing(ctx, first); err != nil {
			return fmt.Errorf("%d of 4 when the other is gone: %w", ofFirst.size(), err)
		}
	}
	if err := it.produce(ctx, topic, 100); err != nil {
		return err
	}
	if _, err := read(ctx, first, 100); err != nil {
		return err
	}
	if err := first.CommitUncommittedOffsets(ctx); err != nil {
		return err
	}
	first.LeaveGroup()
	return deleted(ctx, it, topic, name)
}

// Polls each for a moment: nothing is to come.
func nothing(ctx context.Context, clients ...*kgo.Client) error {
	for _, client := range clients {
		moment, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		fetches := client.PollFetches(moment)
		cancel()
		if count := fetches.NumRecords(); count != 0 {
			return fmt.Errorf("%d records are read again", count)
		}
	}
	return ctx.Err()
}

func described(ctx context.Context, it *broker, name string, members int) error {
	groups, err := it.admin.DescribeGroups(ctx, name)
	if err != nil {
		return err
	}
	if group := groups[name]; group.Err != nil || len(group.Members) != members {
		return fmt.Errorf("%d members, and not %d: %v", len(group.Members), members, group.Err)
	}
	return nil
}

// All was committed; then the group goes.
func deleted(ctx context.Context, it *broker, topic, name string) error {
	committed, err := it.admin.FetchOffsets(ctx, name)
	if err != nil {
		return err
	}
	sum := int64(0)
	for partition := range int32(4) {
		offset, _ := committed.Lookup(topic, partition)
		sum += offset.At
	}
	if sum != 1100 {
		return fmt.Errorf("%d of 1100 are committed", sum)
	}
	gone, err := it.admin.DeleteGroup(ctx, name)
	if err != nil {
		return err
	}
	return gone.Err
}
