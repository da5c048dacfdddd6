import assert from 'node:assert/strict';
import {
  channelMessage,
  FrameReader,
  frameOf,
  MAX_PAYLOAD,
  maskedFrameOf,
  opcodes,
} from '../../../src/gateway/frames.ts';
import { seededRandom } from '../../support/random.ts';

/** The frame as a client sends it. */
function masked(frame: Buffer, mask = Buffer.from([1, 2, 3, 4])): Buffer {
  const short = frame.readUInt8(1);
  const header = short === 126 ? 4 : short === 127 ? 10 : 2;
  const head = Buffer.from(frame.subarray(0, header));
  head.writeUInt8(short | 0x80, 1);
  const payload = Buffer.from(frame.subarray(header).map((byte, i) => byte ^ (mask[i % 4] ?? 0)));
  return Buffer.concat([head, mask, payload]);
}

/** A frame that is not the last of its message. */
function unfinished(frame: Buffer): Buffer {
  const copy = Buffer.from(frame);
  copy.writeUInt8(copy.readUInt8(0) & 0x7f, 0);
  return copy;
}

const binary = (size: number) => frameOf(opcodes.binary, Buffer.alloc(size, 7));

describe('the reader of frames', () => {
  for (const size of [0, 1, 125, 126, 65_535, 65_536, 100_000]) {
    it(`knows where a message of ${size} bytes ends, however its bytes are cut`, () => {
      const bytes = Buffer.concat([binary(size), channelMessage(1, 'x')]);
      const next = seededRandom(size + 1);
      const reader = new FrameReader(false);
      let read = 0;
      let last = 0;
      for (let at = 0; at < bytes.length; ) {
        const end = Math.min(bytes.length, at + 1 + Math.floor(next() * 40_000));
        const boundary = reader.read(bytes.subarray(at, end));
        if (boundary >= 0) last = at + boundary;
        read += end - at;
        at = end;
      }
      assert.equal(read, bytes.length);
      assert.equal(last, bytes.length);
      assert.equal(reader.isAtBoundary, true);
    });
  }

  it('copies what a client sends without its mask, however its bytes are cut', () => {
    const text = 'drawbridge '.repeat(50);
    const bytes = masked(frameOf(opcodes.binary, Buffer.from(text)), Buffer.from([9, 8, 7, 6]));
    for (const size of [1, 3, 64, 1000]) {
      let read = '';
      const reader = new FrameReader(true, { onData: (part) => (read += reader.unmasked(part).toString()) });
      for (let at = 0; at < bytes.length; at += size) reader.read(bytes.subarray(at, at + size));
      assert.equal(read, text);
    }
  });

  it('returns the last place in a chunk at which a message is complete', () => {
    const first = channelMessage(1, 'one');
    const second = channelMessage(1, 'two');
    const reader = new FrameReader(false);
    assert.equal(reader.read(Buffer.concat([first, second.subarray(0, 3)])), first.length);
    assert.equal(reader.isAtBoundary, false);
    assert.equal(reader.read(second.subarray(3)), second.length - 3);
    assert.equal(reader.read(first.subarray(0, 1)), -1);
  });

  it('names no place between the fragments of a message, nor after a control frame between them', () => {
    const reader = new FrameReader(false);
    assert.equal(reader.read(unfinished(channelMessage(1, 'one'))), -1);
    assert.equal(reader.read(frameOf(opcodes.ping, Buffer.alloc(0))), -1);
    const rest = frameOf(opcodes.continuation, Buffer.from('two'));
    assert.equal(reader.read(rest), rest.length);
  });

  it('tells the first byte of each message, unmasked, and no other', () => {
    const firsts: (number | undefined)[] = [];
    const reader = new FrameReader(true, { onData: (_, first) => firsts.push(first) });
    reader.read(masked(unfinished(channelMessage(4, 'ab'))));
    reader.read(masked(frameOf(opcodes.continuation, Buffer.from('c'))));
    reader.read(masked(channelMessage(255, 'd')));
    assert.deepEqual(firsts, [4, undefined, 255]);
  });

  it('tells the first byte even if an empty frame begins the message', () => {
    const firsts: (number | undefined)[] = [];
    const reader = new FrameReader(false, { onData: (_, first) => firsts.push(first) });
    reader.read(unfinished(frameOf(opcodes.binary, Buffer.alloc(0))));
    reader.read(frameOf(opcodes.continuation, Buffer.from([1, 2])));
    assert.deepEqual(firsts, [1]);
  });

  const broken: readonly [string, boolean, Buffer, RegExp][] = [
    ['without a mask from a client', true, binary(1), /not masked/],
    ['with a mask from a server', false, masked(binary(1)), /is masked/],
    ['with a reserved bit', false, Buffer.from([0xc2, 0]), /reserved bit/],
    ['with an unknown opcode', false, frameOf(3, Buffer.alloc(0)), /unknown opcode 3/],
    ['with an unknown control opcode', false, frameOf(11, Buffer.alloc(0)), /unknown opcode 11/],
    ['that continues nothing', false, frameOf(opcodes.continuation, Buffer.alloc(0)), /continues no message/],
    ['that begins within another', false, Buffer.concat([unfinished(binary(1)), binary(1)]), /within another/],
    ['of control with 126 bytes', false, frameOf(opcodes.ping, Buffer.alloc(126)), /over 125/],
    ['of control that is fragmented', false, unfinished(frameOf(opcodes.ping, Buffer.alloc(0))), /fragmented/],
    ['one byte too long', false, frameOf(opcodes.binary, Buffer.alloc(MAX_PAYLOAD + 1)).subarray(0, 20), /at most/],
    ['of 2^63 bytes', false, Buffer.from([0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0]), /at most/],
  ];
  for (const [what, isMasked, bytes, message] of broken) {
    it(`rejects a frame ${what}`, () => assert.throws(() => new FrameReader(isMasked).read(bytes), message));
  }

  it('accepts the longest frame', () => {
    const reader = new FrameReader(false);
    const frame = frameOf(opcodes.binary, Buffer.alloc(MAX_PAYLOAD));
    assert.equal(reader.read(frame), frame.length);
  });

  it('finds no place for another frame after a close frame', () => {
    const [data, close] = [frameOf(opcodes.binary, Buffer.from('x')), frameOf(opcodes.close, Buffer.alloc(2))];
    const reader = new FrameReader(false);
    assert.equal(reader.read(Buffer.concat([data, close])), data.length);
    assert.equal(reader.isClosed, true);
  });

  it('reads a frame with a mask, as it is written', () => {
    const parts: string[] = [];
    const reader = new FrameReader(true, { onData: (part) => parts.push(reader.unmasked(part).toString()) });
    const frame = maskedFrameOf(opcodes.binary, Buffer.from('typed'));
    assert.equal(reader.read(frame), frame.length);
    assert.deepEqual(parts, ['typed']);
  });
});
