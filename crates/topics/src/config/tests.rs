use super::*;

#[track_caller]
fn check(key: Key, right: &[&str], wrong: &[&str]) {
    for value in right {
        let mut config = Config::default();
        assert_eq!(config.alter(key, Alter::Set(value)), Ok(()), "{value}");
        assert_eq!((config.value(key), config.is_set(key)), (*value, true));
    }
    for value in wrong {
        let mut config = Config::default();
        let refused = config.alter(key, Alter::Set(value));
        let value = (*value).to_owned();
        assert_eq!(refused, Err(BadConfig::Value { key, value }));
        assert_eq!(config, Config::default());
    }
}

#[test]
fn values_are_taken_or_refused_as_kafka_does() {
    check(
        Key::CleanupPolicy,
        &["delete", "compact", "compact,delete", "compact, delete"],
        &["", "deletes", "compact,x", ","],
    );
    check(Key::CompressionType, &["producer"], &["gzip", "none", ""]);
    check(
        Key::MessageTimestampType,
        &["CreateTime", "LogAppendTime"],
        &["createtime", "-1"],
    );
    check(Key::Durability, &["disk", "memory"], &["Disk", "none"]);
    check(
        Key::RetentionMs,
        &["-1", "0", "9223372036854775807"],
        &["-2", "x", "", "1.5", "9223372036854775808"],
    );
    check(Key::RetentionBytes, &["-1", "0", "1"], &["-2", "1k"]);
    check(Key::DeleteRetentionMs, &["0", "5"], &["-1"]);
    check(
        Key::MaxMessageBytes,
        &["0", "2147483647"],
        &["-1", "2147483648"],
    );
    check(Key::SegmentBytes, &["14", "2147483647"], &["13", "-1"]);
}

#[test]
fn the_defaults_are_kafkas_and_values() {
    let config = Config::default();
    assert_eq!(config.set().len(), 0);
    for key in Key::ALL {
        assert_eq!(key.check(key.default()), Ok(()), "{}", key.name());
        assert_eq!(config.value(key), key.default());
        assert_eq!(Key::parse(key.name()), Ok(key));
    }
    assert_eq!(config.retention_ms(), Some(7 * 24 * 3600 * 1000));
    assert_eq!(config.retention_bytes(), None);
    assert_eq!(config.segment_bytes(), 1 << 30);
    assert_eq!(config.batch_size_max(), (1 << 20) + 12);
    assert_eq!(config.delete_retention_ms(), 24 * 3600 * 1000);
    assert_eq!(config.timestamps(), Timestamps::Create);
    assert_eq!(config.durability(), Durability::Disk);
    let cleanup = config.cleanup();
    assert!(cleanup.deletes && !cleanup.compacts);
}

#[test]
fn what_is_set_counts() {
    let mut config = Config::default();
    for (name, value) in [
        ("retention.ms", "-1"),
        ("retention.bytes", "77"),
        ("segment.bytes", "1000"),
        ("message.timestamp.type", "LogAppendTime"),
        ("telpher.durability", "memory"),
        ("cleanup.policy", "compact"),
    ] {
        let key = Key::parse(name).unwrap();
        config.alter(key, Alter::Set(value)).unwrap();
    }
    assert_eq!(config.retention_ms(), None);
    assert_eq!(config.retention_bytes(), Some(77));
    assert_eq!(config.segment_bytes(), 1000);
    assert_eq!(config.timestamps(), Timestamps::Append);
    assert_eq!(config.durability(), Durability::Memory);
    let cleanup = config.cleanup();
    assert!(!cleanup.deletes && cleanup.compacts);
    config.alter(Key::RetentionMs, Alter::Reset).unwrap();
    assert!(!config.is_set(Key::RetentionMs));
    assert_eq!(config.retention_ms(), Some(604_800_000));
}

#[test]
fn lists_grow_and_shrink_and_numbers_do_not() {
    let mut config = Config::default();
    let key = Key::CleanupPolicy;
    config.alter(key, Alter::Append("compact,delete")).unwrap();
    assert_eq!(config.value(key), "delete,compact");
    config.alter(key, Alter::Subtract("delete")).unwrap();
    assert_eq!(config.value(key), "compact");
    assert!(config.alter(key, Alter::Subtract("compact")).is_err());
    assert_eq!(config.value(key), "compact");
    let key = Key::RetentionMs;
    let refused = config.alter(key, Alter::Append("1"));
    assert_eq!(refused, Err(BadConfig::NoList { key }));
}

#[test]
fn an_error_says_what_there_is() {
    let unknown = Key::parse("retention.hours").unwrap_err().to_string();
    assert!(
        unknown.starts_with("unknown topic config `retention.hours`: there are cleanup.policy, ")
    );
    let mut config = Config::default();
    let refused = config.alter(Key::CompressionType, Alter::Set("zstd"));
    assert_eq!(
        refused.unwrap_err().to_string(),
        "`zstd` is no value of compression.type: it is producer"
    );
    let refused = config.alter(Key::RetentionMs, Alter::Set("-5"));
    assert_eq!(
        refused.unwrap_err().to_string(),
        "`-5` is no value of retention.ms: it is a number from -1 to 9223372036854775807"
    );
}
