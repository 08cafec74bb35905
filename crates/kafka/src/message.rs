//! Schema language: structures, their fields, and the versions of each field.
//!
//! ```text
//! message! {
//!     /// What it is.
//!     struct Topic {
//!         name: String [..=12],                       in versions up to 12
//!         topic_id: Uuid [13..],                      from version 13 on
//!         error_message: Option<String> [1.., null 2..],   may be null from version 2 on
//!         leader_epoch: i32 [7..] = -1,               what it is where it is not on the wire
//!         current_leader: Leader [10.., tag 0],       a tagged field
//!         partitions: Vec<Partition>,                 always
//!     }
//! }
//! ```
//!
//! Fields have the names and the order of Kafka's schemas. A field that a version lacks is not
//! written, and has its default value after reading.

macro_rules! message {
    ($(
        $(#[$about:meta])*
        struct $name:ident {
            $(
                $(#[$field_about:meta])*
                $field:ident : $type:ty $([ $($rule:tt)* ])? $(= $default:expr)?
            ),* $(,)?
        }
    )*) => {$(
        $(#[$about])*
        #[allow(missing_docs, reason = "the fields are those of Kafka's schema")]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $( $(#[$field_about])* pub $field: $type, )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: message!(@default $($default)?), )* }
            }
        }

        impl $crate::field::Field for $name {
            #[allow(unused_mut, unused_variables, reason = "not every structure has tagged fields")]
            fn read(
                reader: &mut $crate::reader::Reader<'_>,
            ) -> Result<Self, $crate::reader::DecodeError> {
                $(
                    let mut $field: $type =
                        message!(@read reader, $field, [$($($rule)*)?], [$($default)?]);
                )*
                reader.tagged(|tag, reader| {
                    $( message!(@read_tag tag, reader, $field, [$($($rule)*)?]); )*
                    Ok(false)
                })?;
                Ok(Self { $($field),* })
            }

            #[allow(unused_variables, reason = "not every structure has fields, or tagged ones")]
            fn write(&self, writer: &mut $crate::writer::Writer<'_>) {
                $( message!(@write writer, self.$field, [$($($rule)*)?]); )*
                let version = writer.version();
                writer.tagged(|tags| {
                    let default = Self::default();
                    $( message!(@write_tag version, tags, self, default, $field, [$($($rule)*)?]); )*
                });
            }
        }

        #[cfg(test)]
        impl $crate::sample::Sample for $name {
            #[allow(unused_mut, unused_variables, reason = "there are structures without fields")]
            fn sample(source: &mut $crate::sample::Source<'_>) -> Self {
                let mut value = Self::default();
                $( message!(@sample source, value.$field, [$($($rule)*)?]); )*
                value
            }
        }
    )*};

    (@default) => { Default::default() };
    (@default $default:expr) => { $default };

    (@read $reader:ident, $field:ident, [], [$($default:expr)?]) => {{
        $reader.at(stringify!($field));
        $crate::field::Field::read($reader)?
    }};
    (@read $reader:ident, $field:ident, [$versions:expr], [$($default:expr)?]) => {
        if ($versions).contains(&$reader.version()) {
            message!(@read $reader, $field, [], [])
        } else {
            message!(@default $($default)?)
        }
    };
    (@read $reader:ident, $field:ident, [$versions:expr, null $null:expr], [$($default:expr)?]) => {
        if ($versions).contains(&$reader.version()) {
            $reader.at(stringify!($field));
            let is_nullable = ($null).contains(&$reader.version());
            $crate::field::read_optional($reader, is_nullable)?
        } else {
            message!(@default $($default)?)
        }
    };
    (@read $reader:ident, $field:ident, [$versions:expr, tag $tag:literal], [$($default:expr)?]) => {
        message!(@default $($default)?)
    };

    (@read_tag $read:ident, $reader:ident, $field:ident, [$versions:expr, tag $tag:literal]) => {
        if $read == $tag && ($versions).contains(&$reader.version()) {
            $field = message!(@read $reader, $field, [], []);
            return Ok(true);
        }
    };
    (@read_tag $read:ident, $reader:ident, $field:ident, [$($rule:tt)*]) => {};

    (@write $writer:ident, $self:ident . $field:ident, []) => {
        $crate::field::Field::write(&$self.$field, $writer);
    };
    (@write $writer:ident, $self:ident . $field:ident, [$versions:expr]) => {
        if ($versions).contains(&$writer.version()) {
            message!(@write $writer, $self.$field, []);
        }
    };
    (@write $writer:ident, $self:ident . $field:ident, [$versions:expr, null $null:expr]) => {
        if ($versions).contains(&$writer.version()) {
            let is_nullable = ($null).contains(&$writer.version());
            $crate::field::write_optional($self.$field.as_ref(), $writer, is_nullable);
        }
    };
    (@write $writer:ident, $self:ident . $field:ident, [$versions:expr, tag $tag:literal]) => {};

    (@write_tag $version:ident, $tags:ident, $self:ident, $default:ident, $field:ident,
        [$versions:expr, tag $tag:literal]) => {
        if ($versions).contains(&$version) && $self.$field != $default.$field {
            $tags.put($tag, |writer| $crate::field::Field::write(&$self.$field, writer));
        }
    };
    (@write_tag $version:ident, $tags:ident, $self:ident, $default:ident, $field:ident,
        [$($rule:tt)*]) => {};

    (@sample $source:ident, $value:ident . $field:ident, []) => {
        $value.$field = $crate::sample::Sample::sample($source);
    };
    (@sample $source:ident, $value:ident . $field:ident, [$versions:expr]) => {
        if ($versions).contains(&$source.version()) {
            message!(@sample $source, $value.$field, []);
        }
    };
    (@sample $source:ident, $value:ident . $field:ident, [$versions:expr, null $null:expr]) => {
        message!(@sample $source, $value.$field, [$versions]);
        if ($versions).contains(&$source.version())
            && !($null).contains(&$source.version())
            && $value.$field.is_none()
        {
            $value.$field = Some(Default::default());
        }
    };
    (@sample $source:ident, $value:ident . $field:ident, [$versions:expr, tag $tag:literal]) => {
        message!(@sample $source, $value.$field, [$versions]);
    };
}

pub(crate) use message;
