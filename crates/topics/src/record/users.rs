//! The record of a user.

use super::Malformed;
use crate::bytes::{Put, Rest};
use crate::users::{Credential, Hash, User, check};

impl User {
    /// Appends the record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.text(&self.name);
        let credentials = self.credentials();
        out.count(credentials.len());
        for (hash, credential) in credentials {
            out.push(hash as u8);
            out.put(credential.iterations.to_le_bytes());
            out.bytes(&credential.salt);
            out.bytes(&credential.stored_key);
            out.bytes(&credential.server_key);
        }
    }

    /// Decodes the record.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = Rest::new(bytes, "user of topics");
        let name = rest.text()?;
        let credentials = rest.list(|rest| {
            let hash = Hash::from_u8(rest.u8()?).ok_or(rest.malformed())?;
            let credential = Credential {
                iterations: rest.u32()?,
                salt: rest.bytes()?.to_vec(),
                stored_key: rest.bytes()?.to_vec(),
                server_key: rest.bytes()?.to_vec(),
            };
            check(hash, &credential).map_err(|_| rest.malformed())?;
            Ok((hash, credential))
        })?;
        rest.end()?;
        let credentials = credentials.into_iter();
        Ok(credentials.fold(Self::new(name), |user, (it, kept)| user.with(it, kept)))
    }
}
