//! Kafka's error codes, with those that clients retry by themselves.
//!
//! Codes and flags are those of Kafka 4.1: <https://kafka.apache.org/protocol#protocol_error_codes>.

macro_rules! error_codes {
    ($($(#[$default:meta])? $code:literal $name:ident $($retriable:ident)?;)*) => {
        /// Error code of a request or of a part of it.
        #[allow(missing_docs, reason = "named as in Kafka's list, which says what each means")]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $( $(#[$default])? $name, )*
            /// A code that is not in the list.
            Other(i16),
        }

        impl ErrorCode {
            /// All codes of the list, in order.
            pub const ALL: &[Self] = &[$( Self::$name, )*];

            /// Returns the code on the wire.
            pub fn code(self) -> i16 {
                match self {
                    $( Self::$name => $code, )*
                    Self::Other(code) => code,
                }
            }

            /// True if clients retry by themselves.
            pub fn is_retriable(self) -> bool {
                match self {
                    $( Self::$name => error_codes!(@ $($retriable)?), )*
                    Self::Other(_) => false,
                }
            }
        }

        impl From<i16> for ErrorCode {
            fn from(code: i16) -> Self {
                match code {
                    $( $code => Self::$name, )*
                    code => Self::Other(code),
                }
            }
        }
    };
    (@) => { false };
    (@ retriable) => { true };
}

error_codes! {
    -1 UnknownServerError;
    #[default] 0 None;
    1 OffsetOutOfRange;
    2 CorruptMessage retriable;
    3 UnknownTopicOrPartition retriable;
    4 InvalidFetchSize;
    5 LeaderNotAvailable retriable;
    6 NotLeaderOrFollower retriable;
    7 RequestTimedOut retriable;
    8 BrokerNotAvailable;
    9 ReplicaNotAvailable retriable;
    10 MessageTooLarge;
    11 StaleControllerEpoch;
    12 OffsetMetadataTooLarge;
    13 NetworkException retriable;
    14 CoordinatorLoadInProgress retriable;
    15 CoordinatorNotAvailable retriable;
    16 NotCoordinator retriable;
    17 InvalidTopicException;
    18 RecordListTooLarge;
    19 NotEnoughReplicas retriable;
    20 NotEnoughReplicasAfterAppend retriable;
    21 InvalidRequiredAcks;
    22 IllegalGeneration;
    23 InconsistentGroupProtocol;
    24 InvalidGroupId;
    25 UnknownMemberId;
    26 InvalidSessionTimeout;
    27 RebalanceInProgress;
    28 InvalidCommitOffsetSize;
    29 TopicAuthorizationFailed;
    30 GroupAuthorizationFailed;
    31 ClusterAuthorizationFailed;
    32 InvalidTimestamp;
    33 UnsupportedSaslMechanism;
    34 IllegalSaslState;
    35 UnsupportedVersion;
    36 TopicAlreadyExists;
    37 InvalidPartitions;
    38 InvalidReplicationFactor;
    39 InvalidReplicaAssignment;
    40 InvalidConfig;
    41 NotController retriable;
    42 InvalidRequest;
    43 UnsupportedForMessageFormat;
    44 PolicyViolation;
    45 OutOfOrderSequenceNumber;
    46 DuplicateSequenceNumber;
    47 InvalidProducerEpoch;
    48 InvalidTxnState;
    49 InvalidProducerIdMapping;
    50 InvalidTransactionTimeout;
    51 ConcurrentTransactions retriable;
    52 TransactionCoordinatorFenced;
    53 TransactionalIdAuthorizationFailed;
    54 SecurityDisabled;
    55 OperationNotAttempted;
    56 KafkaStorageError retriable;
    57 LogDirNotFound;
    58 SaslAuthenticationFailed;
    59 UnknownProducerId;
    60 ReassignmentInProgress;
    61 DelegationTokenAuthDisabled;
    62 DelegationTokenNotFound;
    63 DelegationTokenOwnerMismatch;
    64 DelegationTokenRequestNotAllowed;
    65 DelegationTokenAuthorizationFailed;
    66 DelegationTokenExpired;
    67 InvalidPrincipalType;
    68 NonEmptyGroup;
    69 GroupIdNotFound;
    70 FetchSessionIdNotFound retriable;
    71 InvalidFetchSessionEpoch retriable;
    72 ListenerNotFound retriable;
    73 TopicDeletionDisabled;
    74 FencedLeaderEpoch retriable;
    75 UnknownLeaderEpoch retriable;
    76 UnsupportedCompressionType;
    77 StaleBrokerEpoch;
    78 OffsetNotAvailable retriable;
    79 MemberIdRequired;
    80 PreferredLeaderNotAvailable retriable;
    81 GroupMaxSizeReached;
    82 FencedInstanceId;
    83 EligibleLeadersNotAvailable retriable;
    84 ElectionNotNeeded retriable;
    85 NoReassignmentInProgress;
    86 GroupSubscribedToTopic;
    87 InvalidRecord;
    88 UnstableOffsetCommit retriable;
    89 ThrottlingQuotaExceeded retriable;
    90 ProducerFenced;
    91 ResourceNotFound;
    92 DuplicateResource;
    93 UnacceptableCredential;
    94 InconsistentVoterSet;
    95 InvalidUpdateVersion;
    96 FeatureUpdateFailed;
    97 PrincipalDeserializationFailure;
    98 SnapshotNotFound;
    99 PositionOutOfRange;
    100 UnknownTopicId retriable;
    101 DuplicateBrokerRegistration;
    102 BrokerIdNotRegistered;
    103 InconsistentTopicId retriable;
    104 InconsistentClusterId;
    105 TransactionalIdNotFound;
    106 FetchSessionTopicIdError retriable;
    107 IneligibleReplica;
    108 NewLeaderElected;
    109 OffsetMovedToTieredStorage;
    110 FencedMemberEpoch;
    111 UnreleasedInstanceId;
    112 UnsupportedAssignor;
    113 StaleMemberEpoch;
    114 MismatchedEndpointType;
    115 UnsupportedEndpointType;
    116 UnknownControllerId;
    117 UnknownSubscriptionId;
    118 TelemetryTooLarge;
    119 InvalidRegistration;
    120 TransactionAbortable;
    121 InvalidRecordState;
    122 ShareSessionNotFound retriable;
    123 InvalidShareSessionEpoch retriable;
    124 FencedStateEpoch;
    125 InvalidVoterKey;
    126 DuplicateVoter;
    127 VoterNotFound;
    128 InvalidRegularExpression;
    129 RebootstrapRequired;
    130 StreamsInvalidTopology;
    131 StreamsInvalidTopologyEpoch;
    132 StreamsTopologyFenced;
    133 ShareSessionLimitReached retriable;
}

impl ErrorCode {
    /// True unless the code is `None`.
    pub fn is_error(self) -> bool {
        self != Self::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_one_code_and_every_code_its_number() {
        for code in i16::MIN..=i16::MAX {
            assert_eq!(ErrorCode::from(code).code(), code);
        }
        for &code in ErrorCode::ALL {
            assert_eq!(ErrorCode::from(code.code()), code);
        }
    }
}
