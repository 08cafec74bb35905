//! Check of the configuration: would `telpher serve` accept it.

use std::sync::Arc;

use access::tokens::TokenStore;
use config::{Config, Loaded};
use console::{Environment, Failure};
use platform::RealDisk;
use serve::doctor::{Finding, Verdict};
use serve::store_failure;

use crate::commands::config::check_files;
use crate::settings::DataArgs;

const CHECK: &str = "configuration";

/// Returns the findings, and the configuration for the other checks: the defaults if the
/// configuration has mistakes, `None` if not even the data directory is valid.
pub(super) fn check(data: &DataArgs, environment: &Environment) -> (Vec<Finding>, Option<Loaded>) {
    match data.load(environment) {
        Ok(loaded) => (check_loaded(&loaded), Some(loaded)),
        Err(failure) => {
            let mut findings = Finding::of_failure(CHECK, failure);
            let loaded = data.load_defaults().ok();
            if loaded.is_some() {
                let detail = "the following checks use the defaults";
                findings.push(Finding::new(CHECK, Verdict::Warn, detail));
            }
            (findings, loaded)
        }
    }
}

fn check_loaded(loaded: &Loaded) -> Vec<Finding> {
    let mut findings: Vec<_> = loaded.warnings.iter().map(warning).collect();
    if let Err(failure) = refuse(loaded) {
        findings.extend(Finding::of_failure(CHECK, failure));
    }
    if findings.is_empty() {
        let defaults = Config::default();
        let differs = |spec: &&config::Spec| spec.text(&loaded.config) != spec.text(&defaults);
        let count = config::specs().filter(differs).count();
        let detail = format!("valid; {} from the defaults", differ(count));
        findings.push(Finding::ok(CHECK, detail));
    }
    findings
}

fn differ(count: usize) -> String {
    match count {
        0 => "no option differs".to_owned(),
        1 => "1 option differs".to_owned(),
        count => format!("{count} options differ"),
    }
}

fn warning(mistake: &config::Mistake) -> Finding {
    Finding {
        hints: mistake.hints.clone(),
        ..Finding::new(CHECK, Verdict::Warn, mistake.to_string())
    }
}

/// Makes the checks of `telpher serve` before it opens a listener.
fn refuse(loaded: &Loaded) -> Result<(), Failure> {
    let dir = &loaded.config.data.dir;
    let tokens = TokenStore::open(Arc::new(RealDisk), dir).map_err(store_failure)?;
    config::check_exposure(loaded, tokens.list().len()).map_err(serve::config_failure)?;
    check_files(&loaded.config)
}
