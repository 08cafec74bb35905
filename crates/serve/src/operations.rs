//! The configuration and the checks of the running node, for its administrators.

use std::sync::Arc;

use config::{Config, Loaded, Origin, Spec, specs};
use http_api::{CheckDocument, OptionDocument};
use journal::SyncTimes;

use crate::backup::Backups;
use crate::doctor::{self, Finding};

/// The configuration of this process, and the facts that its checks use.
pub(super) struct Operations {
    /// The configuration as it was loaded, with the origins of its values.
    pub(super) loaded: Arc<Loaded>,
    /// The configuration in effect.
    pub(super) config: Config,
    pub(super) sync_times: Arc<SyncTimes>,
    pub(super) backups: Backups,
}

impl http_api::Operations for Operations {
    fn configuration(&self) -> Vec<OptionDocument> {
        specs().map(|spec| self.option(spec)).collect()
    }

    fn checks(&self) -> Vec<CheckDocument> {
        let last = self.backups.last();
        let (config, loaded) = (&self.config, &self.loaded);
        let findings = doctor::check_running(config, loaded, &self.sync_times, last.as_ref());
        findings.into_iter().map(document).collect()
    }
}

impl Operations {
    fn option(&self, spec: &Spec) -> OptionDocument {
        let (value, loaded) = (spec.text(&self.config), spec.text(&self.loaded.config));
        let origin = self.loaded.origin(spec);
        let (layer, origin) = match &origin {
            _ if value != loaded => (
                "node",
                "adjusted by the node to the system or its cluster".to_owned(),
            ),
            Origin::Default => ("default", origin.to_string()),
            Origin::File { .. } => ("file", origin.to_string()),
            Origin::Variable(_) => ("environment", origin.to_string()),
            Origin::Flag(_) => ("option", origin.to_string()),
        };
        OptionDocument {
            key: spec.key,
            value: masked(&value),
            default: masked(&spec.default_text()),
            layer,
            origin,
            variable: spec.variable(),
            flag: format!("--{}", spec.flag()),
            description: spec.doc(),
        }
    }
}

fn document(finding: Finding) -> CheckDocument {
    CheckDocument {
        check: finding.check,
        verdict: finding.verdict.name(),
        detail: finding.detail,
        hints: finding.hints,
        figures: finding.figures,
    }
}

/// Replaces the password of every address in a text by `***`.
fn masked(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, address) = rest.split_at(at + "://".len());
        shown.push_str(before);
        let end = address.find(['/', '?', '#', ',', ' ']);
        let (authority, after) = address.split_at(end.unwrap_or(address.len()));
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        match user.and_then(|user| user.split_once(':')) {
            Some((name, password)) => {
                let host = &authority[name.len() + 1 + password.len()..];
                shown.push_str(&format!("{name}:***{host}"));
            }
            None => shown.push_str(authority),
        }
        rest = after;
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_of_addresses_are_masked() {
        for (text, expected) in [
            ("127.0.0.1:7401", "127.0.0.1:7401"),
            ("https://collector:4318", "https://collector:4318"),
            (
                "https://ann:s3cret@collector:4318/v1",
                "https://ann:***@collector:4318/v1",
            ),
            (
                "redis://:p@a,rediss://u:q@b",
                "redis://:***@a,rediss://u:***@b",
            ),
            ("http://u:a@b:c@h/x", "http://u:***@h/x"),
            ("http://h/?a=b@c", "http://h/?a=b@c"),
        ] {
            assert_eq!(masked(text), expected);
        }
    }

    #[test]
    fn each_option_has_its_layer_and_origin() {
        let url = config::find("archive.url").unwrap();
        let flag = config::find("http.listen").unwrap();
        let file = "[kafka]\nlisten = 'none'\n[archive]\nurl = 'postgres://u:s3cret@h/d'\n";
        let loaded = config::load(
            Some((std::path::Path::new("t.toml"), file)),
            [("TELPHER_NATIVE_CONNECTIONS_MAX".into(), "7".into())],
            [(flag, "127.0.0.1:1".to_owned())],
        );
        let loaded = loaded.unwrap();
        let mut config = loaded.config.clone();
        config.http.connections_max = 3;
        let operations = Operations {
            loaded: Arc::new(loaded),
            config,
            sync_times: Arc::default(),
            backups: Backups::default(),
        };
        let options = http_api::Operations::configuration(&operations);
        assert_eq!(options.len(), specs().count());
        let of = |key: &str| {
            let found = options.iter().find(|it| it.key == key).unwrap();
            (found.layer, found.origin.as_str(), found.value.as_str())
        };
        assert_eq!(of("kafka.listen"), ("file", "t.toml:2:1", "none"));
        assert_eq!(
            of("http.listen"),
            ("option", "--http-listen", "127.0.0.1:1")
        );
        assert_eq!(
            of("native.connections_max"),
            ("environment", "TELPHER_NATIVE_CONNECTIONS_MAX", "7")
        );
        assert_eq!(of("http.connections_max").0, "node");
        assert_eq!(of("journal.segment_size").0, "default");
        let shown = format!("{options:?}");
        assert!(!shown.contains("s3cret"), "{}", of(url.key).2);
    }
}
