//! Subjects of takes: `org/namespace/agent`, optionally with a run.

/// Maximum size of one part of a subject, in bytes.
const PART_SIZE_MAX: usize = 255;

/// The number of name parts that a limit distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Tier {
    /// `org`.
    Org = 1,
    /// `org/namespace`.
    Namespace = 2,
    /// `org/namespace/agent`.
    Agent = 3,
}

impl Tier {
    /// Returns the tier of a prefix with that many parts.
    pub fn of(parts: usize) -> Option<Self> {
        match parts {
            1 => Some(Self::Org),
            2 => Some(Self::Namespace),
            3 => Some(Self::Agent),
            _ => None,
        }
    }
}

/// The subject of a take. A run is an attribute of the name, written after a `?`:
/// `acme/search/bot?run=7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject<'a> {
    text: &'a str,
    /// The end positions of the first and the second part.
    ends: [u16; 2],
    run: &'a str,
}

/// A text that is no subject or no prefix of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubjectError {
    /// The number of parts is wrong.
    #[error("invalid subject: it has {0} parts, expected `org/namespace/agent`")]
    Parts(usize),
    /// A part is empty, too long, or has an invalid character.
    #[error(
        "a part of a subject must have 1 to {PART_SIZE_MAX} bytes without spaces, `/`, `?` and `*`"
    )]
    Part,
    /// An attribute other than `run=`.
    #[error("the only attribute of a subject is `run=…`")]
    Attribute,
}

impl<'a> Subject<'a> {
    /// Parses `org/namespace/agent`, optionally followed by `?run=…`. An instance after the agent
    /// is ignored: all instances share the limits of their agent.
    pub fn parse(text: &'a str) -> Result<Self, SubjectError> {
        let (name, run) = split_run(text)?;
        Self::new(name, run)
    }

    /// Creates a subject from a name and a run; an empty `run` is none.
    pub fn new(name: &'a str, run: &'a str) -> Result<Self, SubjectError> {
        let mut slashes = [name.len(); 3];
        let mut count = 0;
        for (index, byte) in name.bytes().enumerate() {
            match byte {
                b'/' if count == 3 => return Err(SubjectError::Parts(5)),
                b'/' => {
                    slashes[count] = index;
                    count += 1;
                }
                byte if !is_valid(byte) => return Err(SubjectError::Part),
                _ => {}
            }
        }
        if count < 2 {
            return Err(SubjectError::Parts(count + 1));
        }
        let [first, second, third] = slashes;
        let sizes = [first, second - first - 1, third - second - 1];
        let is_part = |size: &usize| (1..=PART_SIZE_MAX).contains(size);
        let is_run = run.len() <= PART_SIZE_MAX && run.bytes().all(is_valid) && !run.contains('/');
        if !sizes.iter().all(is_part) || !is_run {
            return Err(SubjectError::Part);
        }
        Ok(Self {
            text: &name[..third],
            ends: [first as u16, second as u16],
            run,
        })
    }

    /// Returns the name: three parts.
    pub fn name(&self) -> &'a str {
        self.text
    }

    /// Returns the run; empty for none.
    pub fn run(&self) -> &'a str {
        self.run
    }

    /// Returns the first parts of the name.
    pub fn prefix(&self, tier: Tier) -> &'a str {
        match tier {
            Tier::Org => &self.text[..usize::from(self.ends[0])],
            Tier::Namespace => &self.text[..usize::from(self.ends[1])],
            Tier::Agent => self.text,
        }
    }

    /// Returns the part of the name with that index, from 0.
    pub(crate) fn part(&self, index: usize) -> &'a str {
        let [first, second] = self.ends.map(usize::from);
        match index {
            0 => &self.text[..first],
            1 => &self.text[first + 1..second],
            _ => &self.text[second + 1..],
        }
    }
}

impl std::fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.run {
            "" => f.write_str(self.text),
            run => write!(f, "{}?run={run}", self.text),
        }
    }
}

/// A subject or a common prefix of several: one to three name parts, and optionally a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix<'a> {
    /// The parts, separated by slashes.
    pub name: &'a str,
    /// The run; empty for none.
    pub run: &'a str,
}

impl<'a> Prefix<'a> {
    /// Parses `org`, `org/namespace` or `org/namespace/agent`, optionally followed by `?run=…`.
    pub fn parse(text: &'a str) -> Result<Self, SubjectError> {
        let (name, run) = split_run(text)?;
        let parts = name.split('/').count();
        let is_part = |part: &str| (1..=PART_SIZE_MAX).contains(&part.len());
        if Tier::of(parts).is_none() {
            return Err(SubjectError::Parts(parts));
        }
        let is_valid = name
            .bytes()
            .chain(run.bytes())
            .all(|byte| byte == b'/' || is_valid(byte));
        match is_valid && name.split('/').all(is_part) && run.len() <= PART_SIZE_MAX {
            true => Ok(Self { name, run }),
            false => Err(SubjectError::Part),
        }
    }

    /// Returns the number of name parts.
    pub fn tier(&self) -> Tier {
        Tier::of(self.name.split('/').count()).unwrap_or(Tier::Agent)
    }

    /// Returns whether the prefix covers the subject.
    pub fn covers(&self, subject: &Subject<'_>) -> bool {
        subject.prefix(self.tier()) == self.name && (self.run.is_empty() || self.run == subject.run)
    }
}

impl std::fmt::Display for Prefix<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.run {
            "" => f.write_str(self.name),
            run => write!(f, "{}?run={run}", self.name),
        }
    }
}

fn split_run(text: &str) -> Result<(&str, &str), SubjectError> {
    match text.split_once('?') {
        None => Ok((text, "")),
        Some((name, attribute)) => match attribute.strip_prefix("run=") {
            Some(run) if !run.is_empty() => Ok((name, run)),
            _ => Err(SubjectError::Attribute),
        },
    }
}

fn is_valid(byte: u8) -> bool {
    byte > b' ' && byte != b'?' && byte != b'*' && byte != 0x7f
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_gives_its_prefixes() {
        let subject = Subject::parse("acme/search/bot/i-7?run=42").unwrap();
        let prefixes = [Tier::Org, Tier::Namespace, Tier::Agent].map(|tier| subject.prefix(tier));
        assert_eq!(prefixes, ["acme", "acme/search", "acme/search/bot"]);
        assert_eq!(subject.to_string(), "acme/search/bot?run=42");
        assert_eq!(
            [0, 1, 2].map(|part| subject.part(part)),
            ["acme", "search", "bot"]
        );
    }

    #[test]
    fn invalid_subjects_are_refused() {
        let refused = |text: &str| Subject::parse(text).unwrap_err();
        assert_eq!(refused("a/b"), SubjectError::Parts(2));
        assert_eq!(refused("a/b/c/d/e"), SubjectError::Parts(5));
        assert_eq!(refused("a//c"), SubjectError::Part);
        assert_eq!(refused("a/b/c d"), SubjectError::Part);
        assert_eq!(refused("a/b/c?x=1"), SubjectError::Attribute);
        assert_eq!(
            refused(&format!("a/b/{}", "x".repeat(256))),
            SubjectError::Part
        );
    }

    #[test]
    fn a_prefix_covers_subjects_that_begin_with_it() {
        let subject = Subject::parse("acme/search/bot?run=42").unwrap();
        for (prefix, covers) in [
            ("acme", true),
            ("acme/sea", false),
            ("acme/search", true),
            ("acme/search/bot?run=42", true),
            ("acme?run=41", false),
        ] {
            assert_eq!(
                Prefix::parse(prefix).unwrap().covers(&subject),
                covers,
                "{prefix}"
            );
        }
    }
}
