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
fn config_values_are_accepted_or_refused_as_in_kafka() {
    check(
        Key::CleanupPolicy,
        &["delete", "compact", "compact,delete", "compact, delete"],
        &["", "deletes", "compact,x", ","],
    );
    check(
        Key::CompressionType,
        &["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"],
        &["brotli", "none", "", "GZIP"],
    );
    check(Key::CompressionGzipLevel, &["-1", "1", "9"], &["0", "10"]);
    check(Key::CompressionLz4Level, &["1", "17"], &["0", "18", "-1"]);
    check(
        Key::CompressionZstdLevel,
        &["-131072", "22"],
        &["-131073", "23"],
    );
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
fn config_keys_without_effect_are_validated() {
    check(
        Key::MinInsyncReplicas,
        &["1", "2", " 1 "],
        &["0", "one", "2147483648"],
    );
    check(
        Key::UncleanLeaderElection,
        &["true", "false", "True", " false"],
        &["yes", "", "1"],
    );
    check(
        Key::MinCleanableDirtyRatio,
        &["0", "0.01", "1", "1.0"],
        &["1.1", "-0.1", "half", "NaN", ""],
    );
    let long_max = "9223372036854775807";
    for key in [Key::MaxCompactionLagMs, Key::SegmentMs, Key::FlushMessages] {
        check(key, &["1", long_max], &["0", "-1"]);
    }
    for key in [
        Key::MinCompactionLagMs,
        Key::FlushMs,
        Key::FileDeleteDelayMs,
        Key::SegmentJitterMs,
        Key::MessageTimestampBeforeMaxMs,
        Key::MessageTimestampAfterMaxMs,
    ] {
        check(key, &["0", long_max], &["-1", "x"]);
    }
    check(
        Key::LeaderThrottledReplicas,
        &["", "*", "0:1", "0:1,1:1"],
        &["0", "a:b", "0:1:2"],
    );
    check(Key::RemoteStorageEnable, &["false"], &["true"]);
    check(Key::LocalRetentionMs, &["-2", "5"], &["-3"]);
    check(Key::SegmentIndexBytes, &["4"], &["3"]);
    check(Key::Preallocate, &["true"], &["maybe"]);
}

#[test]
fn compaction_lags_are_checked_together() {
    let set = |pairs: &[(Key, &str)]| {
        let mut config = Config::default();
        for (key, value) in pairs {
            config.alter(*key, Alter::Set(value)).unwrap();
        }
        config
    };
    let (min, max) = (Key::MinCompactionLagMs, Key::MaxCompactionLagMs);
    assert_eq!(set(&[(min, "5"), (max, "5")]).check(), Ok(()));
    assert_eq!(
        set(&[(min, "6"), (max, "5")]).check(),
        Err(BadConfig::CompactionLag { min: 6, max: 5 })
    );
}

#[test]
fn compression_has_a_codec_and_a_level() {
    let of = |pairs: &[(&str, &str)]| {
        let mut config = Config::default();
        for (key, value) in pairs {
            let key = Key::parse(key).unwrap();
            config.alter(key, Alter::Set(value)).unwrap();
        }
        config.compression()
    };
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[("compression.type", "producer")]), None);
    let uncompressed = of(&[("compression.type", "uncompressed")]);
    assert_eq!(uncompressed, Some(Codec::None));
    let gzip = ("compression.type", "gzip");
    assert_eq!(of(&[gzip]), Some(Codec::Gzip(None)));
    let leveled = of(&[gzip, ("compression.gzip.level", "7")]);
    assert_eq!(leveled, Some(Codec::Gzip(Some(7))));
    let zstd = ("compression.type", "zstd");
    assert_eq!(of(&[zstd]), Some(Codec::Zstd(3)));
    let leveled = of(&[zstd, ("compression.zstd.level", "-5")]);
    assert_eq!(leveled, Some(Codec::Zstd(-5)));
}

#[test]
fn config_keys_are_sorted_and_documented() {
    let names: Vec<_> = Key::ALL.iter().map(|key| key.name()).collect();
    assert!(names.is_sorted(), "{names:?}");
    for key in Key::ALL {
        assert!(key.documentation().ends_with('.'), "{}", key.name());
    }
}

#[test]
fn the_config_defaults_are_those_of_kafka_and_valid() {
    let config = Config::default();
    assert_eq!(config.set().len(), 0);
    for &key in Key::ALL {
        assert_eq!(key.check(key.default()), Ok(()), "{}", key.name());
        assert_eq!(config.value(key), key.default());
        assert_eq!(Key::parse(key.name()), Ok(key));
    }
    assert_eq!(config.retention_ms(), Some(7 * 24 * 3600 * 1000));
    assert_eq!(config.retention_bytes(), None);
    let compaction = config.compaction();
    assert_eq!(
        (compaction.dirty_ratio_min, compaction.lag_ms_min),
        (0.5, 0)
    );
    assert_eq!(
        (compaction.lag_ms_max, compaction.segment_ms),
        (i64::MAX, 7 * 24 * 3600 * 1000)
    );
    assert_eq!(config.timestamp_after_ms_max(), 3600 * 1000);
    assert_eq!(config.timestamp_before_ms_max(), i64::MAX);
    assert_eq!(config.batch_size_max(), (1 << 20) + 12);
    assert_eq!(config.delete_retention_ms(), 24 * 3600 * 1000);
    assert_eq!(config.timestamps(), Timestamps::Create);
    assert_eq!(config.durability(), Durability::Disk);
    let cleanup = config.cleanup();
    assert!(cleanup.deletes && !cleanup.compacts);
}

#[test]
fn set_options_override_defaults_and_reset_restores_them() {
    let mut config = Config::default();
    for (name, value) in [
        ("retention.ms", "-1"),
        ("retention.bytes", "77"),
        ("segment.ms", "1000"),
        ("message.timestamp.type", "LogAppendTime"),
        ("telpher.durability", "memory"),
        ("cleanup.policy", "compact"),
    ] {
        let key = Key::parse(name).unwrap();
        config.alter(key, Alter::Set(value)).unwrap();
    }
    assert_eq!(config.retention_ms(), None);
    assert_eq!(config.retention_bytes(), Some(77));
    assert_eq!(config.compaction().segment_ms, 1000);
    assert_eq!(config.timestamps(), Timestamps::Append);
    assert_eq!(config.durability(), Durability::Memory);
    let cleanup = config.cleanup();
    assert!(!cleanup.deletes && cleanup.compacts);
    config.alter(Key::RetentionMs, Alter::Reset).unwrap();
    assert!(!config.is_set(Key::RetentionMs));
    assert_eq!(config.retention_ms(), Some(604_800_000));
}

#[test]
fn append_and_subtract_apply_to_list_configs_only() {
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
fn config_errors_list_the_valid_keys_and_values() {
    let unknown = Key::parse("retention.hours").unwrap_err().to_string();
    assert!(unknown.starts_with("unknown topic config `retention.hours` (known: cleanup.policy, "));
    let mut config = Config::default();
    let refused = config.alter(Key::CompressionType, Alter::Set("brotli"));
    assert_eq!(
        refused.unwrap_err().to_string(),
        "invalid value `brotli` of compression.type: expected producer or uncompressed or gzip or \
         snappy or lz4 or zstd"
    );
    let refused = config.alter(Key::RetentionMs, Alter::Set("-5"));
    assert_eq!(
        refused.unwrap_err().to_string(),
        "invalid value `-5` of retention.ms: expected a number from -1 to 9223372036854775807"
    );
}
