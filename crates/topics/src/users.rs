//! Users with passwords, as SCRAM credentials (RFC 5802): nothing stored here reveals a password.
//!
//! A change of a user is decided here, written, and then applied ([`Users::put`],
//! [`Users::remove`]), under one lock. The Kafka listener computes the bytes of a credential.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The SCRAM mechanism, by its hash function. The numbers are Kafka's, and are stored on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Hash {
    /// `SCRAM-SHA-256`
    Sha256 = 1,
    /// `SCRAM-SHA-512`
    Sha512 = 2,
}

/// The stored credential of a password for one mechanism.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// Random bytes.
    pub salt: Vec<u8>,
    /// The number of iterations.
    pub iterations: u32,
    /// The hash of the key with which a client proves the password.
    pub stored_key: Vec<u8>,
    /// The key with which the server proves itself.
    pub server_key: Vec<u8>,
}

/// A user, with a credential for at least one mechanism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    credentials: BTreeMap<Hash, Credential>,
}

/// A change of one credential of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserChange {
    /// Sets it.
    Set(Hash, Credential),
    /// Removes it.
    Remove(Hash),
    /// Removes all credentials.
    RemoveAll,
}

/// The reason why a user is not changed, with Kafka's error for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UserError {
    /// UNACCEPTABLE_CREDENTIAL.
    #[error("a user name needs 1 to {NAME_SIZE_MAX} bytes")]
    Name,
    /// UNACCEPTABLE_CREDENTIAL.
    #[error("{iterations} iterations are not between {ITERATIONS_MIN} and {ITERATIONS_MAX}")]
    Iterations {
        /// The given number.
        iterations: u32,
    },
    /// UNACCEPTABLE_CREDENTIAL.
    #[error("a salt needs 1 to {SALT_SIZE_MAX} bytes, and keys need the size of their hash")]
    Sizes,
    /// RESOURCE_NOT_FOUND.
    #[error("there is no such user, or it has no credential of that mechanism")]
    Unknown,
    /// POLICY_VIOLATION.
    #[error("too many users (limit {USERS_MAX})")]
    Room,
}

/// The fewest iterations, as RFC 7677 and Kafka's tools require.
pub const ITERATIONS_MIN: u32 = 4_096;

/// The most iterations: a client computes all of them while it waits.
pub const ITERATIONS_MAX: u32 = 1_000_000;

const NAME_SIZE_MAX: usize = 255;
const SALT_SIZE_MAX: usize = 256;
const USERS_MAX: usize = 100_000;

/// All users.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Users(BTreeMap<String, Arc<User>>);

impl Hash {
    /// All mechanisms.
    pub const ALL: [Self; 2] = [Self::Sha256, Self::Sha512];

    /// Returns the mechanism of this number.
    pub fn from_u8(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|it| *it as u8 == number)
    }

    /// Returns the name of the mechanism.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "SCRAM-SHA-256",
            Self::Sha512 => "SCRAM-SHA-512",
        }
    }

    /// Returns the size of its hashes, in bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }
}

impl User {
    /// Returns a user without credentials, to which one has to be added.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            credentials: BTreeMap::new(),
        }
    }

    /// Returns the user with one more credential.
    #[must_use]
    pub fn with(mut self, hash: Hash, credential: Credential) -> Self {
        self.credentials.insert(hash, credential);
        self
    }

    /// Returns the credential for a mechanism.
    pub fn credential(&self, hash: Hash) -> Option<&Credential> {
        self.credentials.get(&hash)
    }

    /// Returns the credentials, by mechanism.
    pub fn credentials(
        &self,
    ) -> impl ExactSizeIterator<Item = (Hash, &Credential)> + DoubleEndedIterator {
        self.credentials.iter().map(|(it, kept)| (*it, kept))
    }

    /// Returns whether the present user of this name still has a credential that this one has.
    pub fn is_still(&self, now: Option<&Self>) -> bool {
        let same = |now: &Self| {
            let mut all = self.credentials();
            all.any(|(hash, kept)| now.credential(hash) == Some(kept))
        };
        now.is_some_and(same)
    }
}

impl Users {
    /// Decides a change of a user: `None` if no credential is left.
    pub fn decide(&self, name: &str, changes: &[UserChange]) -> Result<Option<User>, UserError> {
        if name.is_empty() || name.len() > NAME_SIZE_MAX {
            return Err(UserError::Name);
        }
        let known = self.find(name);
        let is_new = known.is_none();
        let mut user = known.map_or_else(|| User::new(name), |user| User::clone(user));
        for change in changes {
            match change {
                UserChange::Set(hash, credential) => {
                    check(*hash, credential)?;
                    user.credentials.insert(*hash, credential.clone());
                }
                UserChange::Remove(hash) => {
                    let gone = user.credentials.remove(hash);
                    gone.ok_or(UserError::Unknown)?;
                }
                UserChange::RemoveAll if user.credentials.is_empty() => {
                    return Err(UserError::Unknown);
                }
                UserChange::RemoveAll => user.credentials.clear(),
            }
        }
        if is_new && self.0.len() >= USERS_MAX {
            return Err(UserError::Room);
        }
        Ok(Some(user).filter(|user| !user.credentials.is_empty()))
    }

    /// Adds or replaces a user as it was written.
    pub fn put(&mut self, user: User) {
        self.0.insert(user.name.clone(), Arc::new(user));
    }

    /// Removes a user.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Returns the user of this name.
    pub fn find(&self, name: &str) -> Option<&Arc<User>> {
        self.0.get(name)
    }

    /// Returns all users, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<User>> {
        self.0.values()
    }

    /// Returns whether there are no users.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Checks that a credential is usable.
pub(crate) fn check(hash: Hash, credential: &Credential) -> Result<(), UserError> {
    let &Credential { iterations, .. } = credential;
    if !(ITERATIONS_MIN..=ITERATIONS_MAX).contains(&iterations) {
        return Err(UserError::Iterations { iterations });
    }
    let keys = [&credential.stored_key, &credential.server_key];
    let is_salted = (1..=SALT_SIZE_MAX).contains(&credential.salt.len());
    match is_salted && keys.iter().all(|key| key.len() == hash.size()) {
        true => Ok(()),
        false => Err(UserError::Sizes),
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} iterations", self.iterations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credential(hash: Hash) -> Credential {
        Credential {
            salt: vec![1; 16],
            iterations: ITERATIONS_MIN,
            stored_key: vec![2; hash.size()],
            server_key: vec![3; hash.size()],
        }
    }

    fn set(hash: Hash) -> UserChange {
        UserChange::Set(hash, credential(hash))
    }

    #[test]
    fn a_user_exists_until_its_last_credential_is_removed() {
        use Hash::{Sha256, Sha512};
        let mut users = Users::default();
        let both = users.decide("ann", &[set(Sha256), set(Sha512)]).unwrap();
        users.put(both.unwrap());
        let one = users.decide("ann", &[UserChange::Remove(Sha256)]).unwrap();
        let one = one.unwrap();
        assert_eq!(one.credential(Sha256), None);
        assert_eq!(one.credential(Sha512), Some(&credential(Sha512)));
        users.put(one);
        let again = users.decide("ann", &[UserChange::Remove(Sha256)]);
        assert_eq!(again, Err(UserError::Unknown));
        let none = users.decide("ann", &[UserChange::Remove(Sha512)]);
        assert_eq!(none, Ok(None));
        assert_eq!(users.decide("ann", &[UserChange::RemoveAll]), Ok(None));
        users.remove("ann");
        assert!(users.is_empty());
        let again = users.decide("ann", &[UserChange::RemoveAll]);
        assert_eq!(again, Err(UserError::Unknown));
    }

    #[test]
    fn a_user_is_unchanged_while_one_of_its_credentials_is() {
        use Hash::{Sha256, Sha512};
        let was = User::new("ann").with(Sha256, credential(Sha256));
        let more = was.clone().with(Sha512, credential(Sha512));
        assert!(was.is_still(Some(&was)) && was.is_still(Some(&more)) && more.is_still(Some(&was)));
        let another = Credential {
            stored_key: vec![9; 32],
            ..credential(Sha256)
        };
        let changed = was.clone().with(Sha256, another);
        let other = User::new("ann").with(Sha512, credential(Sha512));
        for now in [None, Some(&changed), Some(&other)] {
            assert!(!was.is_still(now), "{now:?}");
        }
    }

    #[test]
    fn invalid_credentials_and_user_names_are_refused() {
        use Hash::Sha256;
        let users = Users::default();
        let with = |change: fn(&mut Credential)| {
            let mut bad = credential(Sha256);
            change(&mut bad);
            users.decide("ann", &[UserChange::Set(Sha256, bad)])
        };
        let iterations = UserError::Iterations { iterations: 4_095 };
        assert_eq!(with(|it| it.iterations = 4_095), Err(iterations));
        let iterations = UserError::Iterations {
            iterations: 1_000_001,
        };
        assert_eq!(with(|it| it.iterations = 1_000_001), Err(iterations));
        assert_eq!(with(|it| it.salt.clear()), Err(UserError::Sizes));
        assert_eq!(with(|it| it.salt = vec![0; 257]), Err(UserError::Sizes));
        assert_eq!(with(|it| it.stored_key.push(0)), Err(UserError::Sizes));
        for name in ["", &"n".repeat(256)] {
            assert_eq!(users.decide(name, &[set(Sha256)]), Err(UserError::Name));
        }
        let shown = format!("{:?}", credential(Sha256));
        assert_eq!(shown, "4096 iterations");
    }
}
