package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	partitions = 3
	pause      = 5 * time.Millisecond
	endLimit   = 120 * time.Second
)

// A producer and a group's copy job, whose lines are described in ../cluster/report.py.
type job struct {
	servers        []string
	source, target string

	mutex         sync.Mutex
	acked, copied map[int]bool
	isProduced    atomic.Bool
}

// Produces until the end of the standard input, copies the rest, and asks for a transaction.
func copyJob(servers, source, target string) {
	it := &job{
		servers: strings.Split(servers, ","), source: source, target: target,
		acked: map[int]bool{}, copied: map[int]bool{},
	}
	over := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(over)
	}()
	copied := make(chan struct{})
	go func() {
		if err := it.copy(); err != nil {
			it.say("error copy: %v", err)
		}
		close(copied)
	}()
	if err := it.produce(over); err != nil {
		it.say("error produce: %v", err)
	}
	it.isProduced.Store(true)
	select {
	case <-copied:
	case <-time.After(endLimit):
		it.say("error copy: %d records are not copied", it.missing())
	}
	it.ask()
}

func (it *job) say(format string, values ...any) {
	line := strings.ReplaceAll(fmt.Sprintf(format, values...), "\n", " ")
	it.mutex.Lock()
	defer it.mutex.Unlock()
	fmt.Println(line)
}

func (it *job) client(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(options, kgo.SeedBrokers(it.servers...))...)
}

// Counts the acknowledged records that are not copied.
func (it *job) missing() int {
	it.mutex.Lock()
	defer it.mutex.Unlock()
	count := 0
	for number := range it.acked {
		if !it.copied[number] {
			count++
		}
	}
	return count
}

func (it *job) produce(over chan struct{}) error {
	client, err := it.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx := context.Background()
	for number := 0; ; number++ {
		select {
		case <-over:
			return client.Flush(ctx)
		case <-time.After(pause):
		}
		record := &kgo.Record{
			Topic: it.source, Partition: int32(number % partitions), Value: fmt.Append(nil, number),
		}
		client.Produce(ctx, record, func(_ *kgo.Record, err error) {
			if err != nil {
				it.say("error record %d: %v", number, err)
				return
			}
			it.mutex.Lock()
			it.acked[number] = true
			it.mutex.Unlock()
			it.say("acked %d", number)
		})
	}
}

func (it *job) copy() error {
	reader, err := it.client(kgo.ConsumerGroup("copies-"+it.target), kgo.ConsumeTopics(it.source),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	if err != nil {
		return err
	}
	defer reader.Close()
	writer, err := it.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer writer.Close()
	for !it.isProduced.Load() || it.missing() > 0 {
		if err := it.copySome(reader, writer); err != nil {
			it.say("error copy: %v", err)
		}
	}
	return nil
}

// Copies what a poll returns, and commits.
func (it *job) copySome(reader, writer *kgo.Client) error {
	ctx := context.Background()
	moment, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	fetches := reader.PollFetches(moment)
	for _, failed := range fetches.Errors() {
		var session *kgo.ErrGroupSession
		switch {
		case errors.Is(failed.Err, context.DeadlineExceeded):
		case errors.As(failed.Err, &session):
			// The client joins again by itself.
			it.say("notice group session")
		default:
			it.say("error read: %v", failed.Err)
		}
	}
	var copies []*kgo.Record
	var numbers []int
	for _, record := range fetches.Records() {
		number, err := strconv.Atoi(string(record.Value))
		if err != nil {
			return err
		}
		numbers = append(numbers, number)
		copies = append(copies, &kgo.Record{
			Topic: it.target, Partition: record.Partition, Value: record.Value,
		})
	}
	if len(copies) == 0 {
		return nil
	}
	if err := writer.ProduceSync(ctx, copies...).FirstErr(); err != nil {
		return err
	}
	if err := reader.CommitUncommittedOffsets(ctx); err != nil {
		// The next commit covers these offsets too.
		it.say("error commit: %v", err)
	}
	it.mutex.Lock()
	for _, number := range numbers {
		it.copied[number] = true
	}
	count := len(it.copied)
	it.mutex.Unlock()
	it.say("copied %d", count)
	return nil
}

// Asks for a transaction, which a cluster refuses.
func (it *job) ask() {
	client, err := it.client(kgo.TransactionalID("transactions-" + it.target))
	if err != nil {
		it.say("error transaction: %v", err)
		return
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	if err = client.BeginTransaction(); err == nil {
		record := &kgo.Record{Topic: it.target, Value: []byte("0")}
		err = client.ProduceSync(ctx, record).FirstErr()
	}
	if err == nil {
		it.say("error transaction: it is not refused")
		return
	}
	it.say("refused %v", err)
}
