//! Loads the layers: defaults, then the file, then the environment, then flags; the last one wins.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use super::{Config, Mistake, Mistakes, Origin, Spec, file, find, specs};

/// Variables with the prefix of options that are not options: the path of the file, and the
/// address, name and credentials of client commands.
pub const RESERVED_VARIABLES: [&str; 6] = [
    "TELPHER_CONFIG",
    "TELPHER_CONTEXT",
    "TELPHER_NAME",
    "TELPHER_TLS_AUTHORITIES",
    "TELPHER_TOKEN",
    "TELPHER_URL",
];

const PREFIX: &str = "TELPHER_";

/// A valid configuration, and the origin of each value.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    /// Warnings that do not prevent a start: variables that no option reads.
    pub warnings: Vec<Mistake>,
    origins: BTreeMap<&'static str, Origin>,
}

impl Loaded {
    /// The origin of the option's value.
    pub fn origin(&self, spec: &Spec) -> Origin {
        self.origins
            .get(spec.key)
            .cloned()
            .unwrap_or(Origin::Default)
    }

    /// Returns whether an option has a value that is not its default; false if there is no such
    /// option.
    pub fn is_configured(&self, key: &str) -> bool {
        origin_of(self, key) != Origin::Default
    }
}

/// A value for an option, not yet parsed.
#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) spec: &'static Spec,
    pub(super) text: String,
    pub(super) origin: Origin,
}

/// Reads all layers and returns the configuration, or all mistakes of all layers.
///
/// `file` is the file's name and text. `environment` may hold any variables: those of ours are
/// picked out, and an empty one counts as unset. `flags` are pairs of an option's key and a
/// value.
pub fn load(
    file: Option<(&Path, &str)>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    flags: impl IntoIterator<Item = (&'static Spec, String)>,
) -> Result<Loaded, Mistakes> {
    let mut mistakes = Vec::new();
    let mut warnings = Vec::new();
    let mut assignments = Vec::new();
    let mut config = Config::default();
    if let Some((path, text)) = file {
        let read = file::read(path, text, &mut mistakes);
        assignments.extend(read.assignments);
        config.limits = read.limits;
    }
    assignments.extend(read_environment(environment, &mut mistakes, &mut warnings));
    assignments.extend(flags.into_iter().map(|(spec, text)| {
        let origin = Origin::Flag(format!("--{}", spec.flag()));
        Assignment { spec, text, origin }
    }));

    let mut loaded = Loaded {
        config,
        warnings,
        origins: BTreeMap::new(),
    };
    for Assignment { spec, text, origin } in assignments {
        match (spec.set)(&mut loaded.config, &text) {
            Ok(()) => {
                loaded.origins.insert(spec.key, origin);
            }
            Err(reason) => {
                mistakes.push(Mistake::new(origin, format!("`{}`: {reason}", spec.key)));
            }
        }
    }
    check_together(&loaded, &mut mistakes);
    mistakes.sort_by(|left, right| left.origin.cmp(&right.origin));
    if mistakes.is_empty() {
        Ok(loaded)
    } else {
        Err(Mistakes(mistakes))
    }
}

fn read_environment(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    mistakes: &mut Vec<Mistake>,
    warnings: &mut Vec<Mistake>,
) -> Vec<Assignment> {
    let mut ours: Vec<_> = environment
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, value)| name.starts_with(PREFIX) && !value.is_empty())
        .filter(|(name, _)| !RESERVED_VARIABLES.contains(&name.as_str()))
        .collect();
    ours.sort();
    let mut assignments = Vec::new();
    for (name, value) in ours {
        let origin = Origin::Variable(name.clone());
        let Some(spec) = specs().find(|spec| spec.variable() == name) else {
            match nearest_variable(&name) {
                Some(nearest) => mistakes.push(
                    Mistake::new(origin, "no option reads this variable".to_owned())
                        .hint(format!("did you mean `{nearest}`?")),
                ),
                None => warnings.push(Mistake::new(
                    origin,
                    "no option reads this variable".to_owned(),
                )),
            }
            continue;
        };
        match value.into_string() {
            Ok(text) => assignments.push(Assignment { spec, text, origin }),
            Err(_) => mistakes.push(Mistake::new(origin, "the value is not UTF-8".to_owned())),
        }
    }
    assignments
}

/// Returns the variable of an option that is similar to `name`. A variable without a similar option
/// may belong to other software (Kubernetes sets `TELPHER_SERVICE_HOST`), so only a likely typing
/// error is a mistake.
fn nearest_variable(name: &str) -> Option<String> {
    let variables: Vec<String> = specs().map(Spec::variable).collect();
    let rests = variables
        .iter()
        .filter_map(|variable| variable.strip_prefix(PREFIX));
    model::nearest(name.strip_prefix(PREFIX)?, rests).map(|rest| format!("{PREFIX}{rest}"))
}

/// Checks rules over more than one option.
fn check_together(loaded: &Loaded, mistakes: &mut Vec<Mistake>) {
    let Config {
        native,
        tls,
        shutdown,
        data,
        slim,
        ..
    } = &loaded.config;
    match (&tls.certificate, &tls.key) {
        (Some(_), None) => mistakes.push(pair_missing(loaded, "tls.certificate", "tls.key")),
        (None, Some(_)) => mistakes.push(pair_missing(loaded, "tls.key", "tls.certificate")),
        _ => {}
    }
    if slim.client_authorities.is_some() && tls.certificate.is_none() {
        let (set, missing) = ("slim.client_authorities", "tls.certificate");
        mistakes.push(pair_missing(loaded, set, missing));
    }
    let claims = [
        ("slim.jwt_issuer", &slim.jwt_issuer),
        ("slim.jwt_audience", &slim.jwt_audience),
    ];
    for (key, claim) in claims {
        if claim.is_some() && slim.jwt_key.is_none() {
            mistakes.push(pair_missing(loaded, key, "slim.jwt_key"));
        }
    }
    if shutdown.drain > shutdown.limit {
        let limit = model::duration::print(shutdown.limit);
        let message = format!("`shutdown.drain` is longer than `shutdown.limit` ({limit})");
        mistakes.push(Mistake::new(origin_of(loaded, "shutdown.drain"), message));
    }
    let sockets = [
        ("native.socket", native.socket.path(&data.dir)),
        ("slim.socket", slim.socket.clone()),
    ];
    for (key, path) in sockets {
        mistakes.extend(path.and_then(|path| socket_too_long(loaded, key, &path)));
    }
    if native.listen.is_none() && native.socket.path(&data.dir).is_none() {
        let message = "`native.listen` and `native.socket` are both `none`: no client can connect";
        mistakes.push(Mistake::new(
            origin_of(loaded, "native.listen"),
            message.to_owned(),
        ));
    }
}

/// Bytes of a Unix socket's path: `sun_path` without its terminating zero (`man 7 unix`).
const SOCKET_PATH_LENGTH_MAX: usize = 107;

fn socket_too_long(loaded: &Loaded, key: &str, path: &Path) -> Option<Mistake> {
    let length = path.as_os_str().len();
    if length <= SOCKET_PATH_LENGTH_MAX {
        return None;
    }
    let message = format!(
        "`{key}`: the path has {length} bytes, the limit of Unix sockets is \
                 {SOCKET_PATH_LENGTH_MAX}: {}",
        path.display()
    );
    let hint = format!("set `{key}` to a shorter path, or to `none`");
    Some(Mistake::new(origin_of(loaded, key), message).hint(hint))
}

fn pair_missing(loaded: &Loaded, set: &str, missing: &str) -> Mistake {
    Mistake::new(
        origin_of(loaded, set),
        format!("`{set}` is set and `{missing}` is not"),
    )
    .hint(format!(
        "set both, or neither; as a flag: --{}",
        missing.replace(['.', '_'], "-")
    ))
}

pub(super) fn origin_of(loaded: &Loaded, key: &str) -> Origin {
    find(key).map_or(Origin::Default, |spec| loaded.origin(spec))
}
