// Many subscribed agents on few connections, by the native protocol (docs/reference/protocol.md).

import { connect } from "node:net";

const HELLO = 0x01;
const WELCOME = 0x02;
const PING = 0x04;
const PONG = 0x05;
const SUBSCRIBE = 0x11;
const REPLY = 0x21;
const HEADER = 16;

function frame(kind, slot, generation, payload) {
  const header = Buffer.alloc(HEADER);
  header.writeUInt32LE(payload.length, 0);
  header.writeUInt8(kind, 4);
  header.writeUInt32LE(slot, 8);
  header.writeUInt32LE(generation, 12);
  return Buffer.concat([header, payload]);
}

function text16(text) {
  const bytes = Buffer.from(text);
  const size = Buffer.alloc(2);
  size.writeUInt16LE(bytes.length);
  return Buffer.concat([size, bytes]);
}

function hello() {
  const fields = Buffer.alloc(36);
  fields.write("TLPH", 0, "latin1");
  fields.writeUInt16LE(1, 4);
  fields.writeUInt16LE(1, 6);
  fields.writeUInt32LE(1 << 20, 12); // frame_size_max
  fields.writeUInt32LE(1_024, 16); // calls_max
  fields.writeUInt32LE(1_024, 20); // credit_messages
  fields.writeBigUInt64LE(1n << 20n, 24); // credit_bytes
  return frame(HELLO, 0, 0, Buffer.concat([fields, text16(""), text16("")]));
}

// Subscribes names on one connection. Returns the socket, which holds the subscriptions.
export function subscribe(address, names) {
  const [host, port] = address.split(":");
  const socket = connect(Number(port), host);
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0);
    let replies = 0;
    socket.once("error", reject);
    socket.once("close", () => reject(new Error(`the node closed the connection after ${replies} of ${names.length} subscriptions`)));
    socket.once("connect", () => {
      const frames = names.map((name, slot) => frame(SUBSCRIBE, slot, 1, Buffer.concat([Buffer.from([0]), text16(name)])));
      socket.write(Buffer.concat([hello(), ...frames]));
    });
    socket.on("data", (piece) => {
      received = Buffer.concat([received, piece]);
      while (received.length >= HEADER) {
        const size = received.readUInt32LE(0);
        if (received.length < HEADER + size) break;
        const kind = received.readUInt8(4);
        if (kind === PING) socket.write(frame(PONG, received.readUInt32LE(8), received.readUInt32LE(12), Buffer.alloc(0)));
        else if (kind === REPLY) replies += 1;
        else if (kind !== WELCOME) reject(new Error(`a frame of kind ${kind}: ${received.subarray(HEADER, HEADER + size)}`));
        received = received.subarray(HEADER + size);
        if (kind === REPLY && replies === names.length) resolve(socket);
      }
    });
  });
}
