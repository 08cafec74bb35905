-- Numbers of 64 bits are kept in bigint bit by bit: a journal's may be negative here.

-- A conversation as it stands. A name that was erased stays: it is not used again.
CREATE TABLE telpher.conversations (
    journal bigint NOT NULL,
    conversation bigint NOT NULL,
    name text NOT NULL,
    event bigint NOT NULL,
    lifecycle text NOT NULL,
    version bigint NOT NULL,
    changed_at timestamptz NOT NULL,
    agent text,
    metadata jsonb,
    metadata_raw bytea,
    erased_at timestamptz,
    PRIMARY KEY (journal, conversation)
);
CREATE INDEX conversations_name ON telpher.conversations (name);

-- A message. `record` is what the journal had, byte by byte, and all that is ever read back; the
-- rest is for queries. JSON that jsonb does not take is absent there, and whole in the record.
CREATE TABLE telpher.messages (
    journal bigint NOT NULL,
    conversation bigint NOT NULL,
    seq bigint NOT NULL,
    partition bigint NOT NULL,
    event bigint NOT NULL,
    at timestamptz NOT NULL,
    id text,
    role text,
    sender text,
    status text,
    tokens bigint,
    is_estimated boolean,
    parts jsonb,
    metadata jsonb,
    record bytea NOT NULL,
    PRIMARY KEY (journal, conversation, seq)
);

-- A message that the table above did not take, and why.
CREATE TABLE telpher.refused (
    journal bigint NOT NULL,
    conversation bigint NOT NULL,
    seq bigint NOT NULL,
    partition bigint NOT NULL,
    event bigint NOT NULL,
    at timestamptz NOT NULL,
    reason text NOT NULL,
    record bytea NOT NULL,
    refused_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (journal, conversation, seq)
);

-- Up to which event each partition is here. It moves in the transaction that brings the events.
CREATE TABLE telpher.marks (
    journal bigint NOT NULL,
    partition bigint NOT NULL,
    name text NOT NULL,
    next bigint NOT NULL,
    -- The last event, by which the journal is known again.
    proof bytea,
    moved_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (journal, partition)
);
