package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Topics are made, described, configured, grown and deleted; the broker is looked at.
func administer(ctx context.Context, it *broker) error {
	topic, err := it.topic(ctx, "admin", 2)
	if err != nil {
		return err
	}
	value := "1000000"
	set := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &value}}
	altered, err := it.admin.AlterTopicConfigs(ctx, set, topic)
	if err != nil {
		return err
	}
	if answer, err := altered.On(topic, nil); err != nil || answer.Err != nil {
		return errors.Join(err, answer.Err)
	}
	configs, err := it.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return err
	}
	described, err := configs.On(topic, nil)
	if err != nil {
		return err
	}
	values := map[string]string{}
	for _, config := range described.Configs {
		values[config.Key] = config.MaybeValue()
	}
	if values["retention.ms"] != value || values["compression.type"] != "producer" {
		return fmt.Errorf("configured as %v", values)
	}
	if err := grown(ctx, it, topic); err != nil {
		return err
	}
	if err := looked(ctx, it, topic); err != nil {
		return err
	}
	gone, err := it.admin.DeleteTopic(ctx, topic)
	if err != nil {
		return err
	}
	return gone.Err
}

func grown(ctx context.Context, it *broker, topic string) error {
	more, err := it.admin.UpdatePartitions(ctx, 5, topic)
	if err != nil {
		return err
	}
	if err := more[topic].Err; err != nil {
		return err
	}
	topics, err := it.admin.ListTopics(ctx, topic)
	if err != nil {
		return err
	}
	if count := len(topics[topic].Partitions); count != 5 {
		return fmt.Errorf("%d partitions, and not 5", count)
	}
	return nil
}

// What is told of the broker: its versions, its disk, and that there are no access rules and no users.
func looked(ctx context.Context, it *broker, topic string) error {
	brokers, err := it.admin.ListBrokers(ctx)
	if err != nil || len(brokers) != 1 {
		return fmt.Errorf("%d brokers: %v", len(brokers), err)
	}
	versions, err := it.admin.ApiVersions(ctx)
	if err != nil {
		return err
	}
	if err := versions[brokers[0].NodeID].Err; err != nil {
		return err
	}
	directories, err := it.admin.DescribeAllLogDirs(ctx, kadm.TopicsSet{topic: {0: {}}})
	if err != nil {
		return err
	}
	if _, isThere := directories[brokers[0].NodeID].LookupPartition(topic, 0); !isThere {
		return fmt.Errorf("no directory holds the topic: %+v", directories)
	}
	users, err := it.admin.DescribeUserSCRAMs(ctx)
	if err != nil || len(users) != 0 {
		return fmt.Errorf("%d users: %v", len(users), err)
	}
	any := kadm.NewACLs().AnyResource().Allow().AllowHosts().Deny().DenyHosts().
		Operations(kadm.OpAny).ResourcePatternType(kadm.ACLPatternAny)
	rules, err := it.admin.DescribeACLs(ctx, any)
	if err != nil {
		return err
	}
	for _, rule := range rules {
		if !errors.Is(rule.Err, kerr.SecurityDisabled) {
			return fmt.Errorf("access rules: %v", rule.Err)
		}
	}
	return nil
}
