// What franz-go does with its defaults, against a broker.
//
//	franz-go HOST:PORT [PART...]
//	franz-go cluster SERVERS SOURCE TARGET
//
// Each part makes topics and groups of its own, and says `ok PART` when everything was as it should be.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// How long anything may take.
const patience = 60 * time.Second

// How long a part may take that does not heed its context.
const partLimit = 3 * patience

// How long nothing more comes before it counts as nothing.
const quiet = 500 * time.Millisecond

// Where the broker is, and what everybody needs of it.
type broker struct {
	address string
	admin   *kadm.Client
}

type part struct {
	name string
	run  func(context.Context, *broker) error
}

var parts = []part{
	{"admin", administer},
	{"produce", produce},
	{"idempotent", idempotent},
	{"offsets", offsets},
	{"group", group},
	{"eager", eager},
	{"transactions", transactions},
	{"fencing", fencing},
	{"exactly once", exactlyOnce},
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: franz-go HOST:PORT [PART...] | cluster SERVERS SOURCE TARGET")
		os.Exit(2)
	}
	if os.Args[1] == "cluster" && len(os.Args) == 5 {
		copyJob(os.Args[2], os.Args[3], os.Args[4])
		return
	}
	it := &broker{address: os.Args[1]}
	it.admin = kadm.NewClient(must(it.client()))
	hasFailed := false
	for _, part := range parts {
		if len(os.Args) > 2 && !slices.Contains(os.Args[2:], part.name) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		started := time.Now()
		late := time.AfterFunc(partLimit, func() {
			fmt.Printf("failed %s: not done in time\n", part.name)
			os.Exit(1)
		})
		if err := part.run(ctx, it); err != nil {
			fmt.Printf("failed %s: %v\n", part.name, err)
			hasFailed = true
		} else {
			fmt.Printf("ok %s %.1f s\n", part.name, time.Since(started).Seconds())
		}
		late.Stop()
		cancel()
	}
	it.admin.Close()
	if hasFailed {
		os.Exit(1)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

// A client with its defaults, but for where the broker is and what its part is about.
func (it *broker) client(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(options, kgo.SeedBrokers(it.address))...)
}

// A name that nobody has used before.
func fresh(name string) string {
	return name + "-" + rand.Text()[:12]
}

// A new topic.
func (it *broker) topic(ctx context.Context, name string, partitions int32) (string, error) {
	name = fresh(name)
	made, err := it.admin.CreateTopic(ctx, partitions, -1, nil, name)
	if err == nil {
		err = made.Err
	}
	return name, err
}

// So many records, told apart by their values.
func records(topic string, count int) []*kgo.Record {
	all := make([]*kgo.Record, count)
	for number := range all {
		all[number] = &kgo.Record{
			Topic: topic,
			Key:   fmt.Appendf(nil, "key %d", number%100),
			Value: fmt.Appendf(nil, "value %d", number),
		}
	}
	return all
}

// Produces so many records.
func (it *broker) produce(ctx context.Context, topic string, count int, options ...kgo.Opt) error {
	client, err := it.client(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	return client.ProduceSync(ctx, records(topic, count)...).FirstErr()
}

// Reads until there are so many, and then what comes within a moment; fails if a value comes twice or one too
// many.
func read(ctx context.Context, client *kgo.Client, count int) (map[string]*kgo.Record, error) {
	found := make(map[string]*kgo.Record)
	take := func(ctx context.Context) error {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		for _, record := range fetches.Records() {
			if found[string(record.Value)] != nil {
				return fmt.Errorf("%q comes twice", record.Value)
			}
			found[string(record.Value)] = record
		}
		return nil
	}
	for len(found) < count {
		if err := take(ctx); err != nil {
			return nil, fmt.Errorf("%d of %d: %w", len(found), count, err)
		}
	}
	rest, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	for rest.Err() == nil {
		if err := take(rest); err != nil && rest.Err() == nil {
			return nil, err
		}
	}
	if len(found) > count {
		return nil, fmt.Errorf("%d, and not %d", len(found), count)
	}
	return found, nil
}
