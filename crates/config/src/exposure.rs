//! The check that no listener is open to other machines by accident.

use super::load::origin_of;
use super::{HostPort, Loaded, Mistake, Mistakes};

/// Refuses listeners that other machines can reach while there is no TLS or no token, unless
/// `insecure` is set. `token_count` is that of the data directory.
pub fn check_exposure(loaded: &Loaded, token_count: usize) -> Result<(), Mistakes> {
    let config = &loaded.config;
    let missing = match (config.tls.files(), token_count) {
        _ if config.auth.insecure => return Ok(()),
        (Some(_), 1..) => return Ok(()),
        (None, 0) => "there is neither TLS nor a token",
        (None, 1..) => "there is no TLS",
        (Some(_), 0) => "there is no token",
    };
    let doors = [
        ("native.listen", &config.native.listen),
        ("http.listen", &config.http.listen),
        ("kafka.listen", &config.kafka.listen),
        ("slim.listen", &config.slim.listen),
    ];
    let mut mistakes: Vec<Mistake> = doors
        .into_iter()
        .filter_map(|(key, listen)| Some((key, listen.as_ref()?)))
        .filter(|(_, listen)| !listen.is_loopback())
        .map(|(key, listen)| exposed(loaded, key, listen, missing))
        .collect();
    let Some(last) = mistakes.last_mut() else {
        return Ok(());
    };
    if config.tls.files().is_none() {
        last.hints
            .push("encrypt: --tls-certificate chain.pem --tls-key key.pem".to_owned());
    }
    if token_count == 0 {
        let dir = config.data.dir.display();
        last.hints
            .push(format!("authenticate: telpher token add NAME --data {dir}"));
    }
    last.hints
        .push("or allow every client that can reach the listener: --insecure".to_owned());
    Err(Mistakes(mistakes))
}

fn exposed(loaded: &Loaded, key: &str, listen: &HostPort, missing: &str) -> Mistake {
    let message = format!("`{key}`: other machines can reach {listen}, and {missing}");
    Mistake::new(origin_of(loaded, key), message)
}
