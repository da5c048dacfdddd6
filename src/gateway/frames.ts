import { randomBytes } from 'node:crypto';

/**
 * Frames of WebSockets (RFC 6455) in one direction. The gateway passes the bytes on unchanged, and
 * parses them to read the messages and to know where it may insert a frame.
 */

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/** Bytes of the payload of a frame. */
export const MAX_PAYLOAD = 16 * 1024 * 1024;

/** The message says how a frame breaks the protocol, such as `a frame is not masked`. */
export class FrameError extends Error {
  override readonly name = 'FrameError';
}

/** Receives the data messages of one direction. */
export interface FrameListener {
  /** The part is as it was sent, perhaps masked. `first`: the message's first byte, unmasked. */
  readonly onData?: (part: Buffer, first?: number) => void;
}

/** Reads frames from chunks of any size. */
export class FrameReader {
  readonly #isMasked: boolean;
  readonly #hasFragments: boolean;
  readonly #listener: FrameListener;
  readonly #header = Buffer.alloc(14);
  #headerBytes = 0;
  /** Bytes of the payload that have not arrived; not set while a header is read. */
  #left: number | undefined;
  #opcode = 0;
  #isFinal = true;
  /** Of the current frame; zeros if frames are not masked. */
  readonly #mask = Buffer.alloc(4);
  /** Bytes of the payload before the current part. */
  #offset = 0;
  /** A data message has begun and is not complete. */
  #isInMessage = false;
  /** The next part is the first of its message. */
  #isStart = false;
  #isClosed = false;

  /** `isMasked`: frames must be masked; if false, must not be. Fragments are allowed by default. */
  constructor(isMasked: boolean, listener: FrameListener = {}, hasFragments = true) {
    this.#isMasked = isMasked;
    this.#hasFragments = hasFragments;
    this.#listener = listener;
  }

  /** All messages so far are complete, so another frame may follow. */
  get isAtBoundary(): boolean {
    return this.#left === undefined && this.#headerBytes === 0 && !this.#isInMessage;
  }

  /** A close frame has begun, after which no frame may follow. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Returns where in the chunk a frame may be inserted last; -1: nowhere. Throws FrameError. */
  read(chunk: Buffer): number {
    let boundary = -1;
    let offset = 0;
    while (offset < chunk.length) {
      offset += this.#left === undefined ? this.#readHeader(chunk, offset) : this.#readPayload(chunk, offset);
      if (this.#left === 0) this.#endFrame();
      if (this.isAtBoundary && !this.#isClosed) boundary = offset;
    }
    return boundary;
  }

  /** A copy of the part that `onData` got. Call it only within `onData`. */
  unmasked(part: Buffer): Buffer {
    const copy = Buffer.from(part);
    for (let i = 0; i < copy.length; i++) copy[i] = part.readUInt8(i) ^ this.#mask.readUInt8((this.#offset + i) % 4);
    return copy;
  }

  #readHeader(chunk: Buffer, offset: number): number {
    const taken = chunk.copy(this.#header, this.#headerBytes, offset, offset + this.#missingHeaderBytes());
    this.#headerBytes += taken;
    if (this.#missingHeaderBytes() === 0) this.#beginFrame();
    return taken;
  }

  /** At most 2 until the first two bytes, which give the header's length, have arrived. */
  #missingHeaderBytes(): number {
    if (this.#headerBytes < 2) return 2 - this.#headerBytes;
    const second = this.#header.readUInt8(1);
    const length = second & 0x7f;
    const size = 2 + (length === 126 ? 2 : length === 127 ? 8 : 0) + (second & 0x80 ? 4 : 0);
    return size - this.#headerBytes;
  }

  #beginFrame(): void {
    const first = this.#header.readUInt8(0);
    const second = this.#header.readUInt8(1);
    const opcode = first & 0x0f;
    this.#isFinal = (first & 0x80) !== 0;
    this.#opcode = opcode;
    const hasMask = (second & 0x80) !== 0;
    const short = second & 0x7f;
    const payload =
      short === 126 ? this.#header.readUInt16BE(2) : short === 127 ? this.#header.readBigUInt64BE(2) : short;
    if (first & 0x70) throw new FrameError('a reserved bit is set');
    if (hasMask !== this.#isMasked)
      throw new FrameError(this.#isMasked ? 'a frame is not masked' : 'a frame is masked');
    if (payload > MAX_PAYLOAD) throw new FrameError(`a frame has ${payload} bytes; at most ${MAX_PAYLOAD} are allowed`);
    this.#checkOrder(Number(payload));
    if (hasMask) this.#header.copy(this.#mask, 0, this.#headerBytes - 4, this.#headerBytes);
    this.#offset = 0;
    this.#headerBytes = 0;
    this.#left = Number(payload);
  }

  #checkOrder(payload: number): void {
    const opcode = this.#opcode;
    if (opcode === opcodes.close) this.#isClosed = true;
    if (opcode >= opcodes.close) {
      if (opcode > opcodes.pong) throw new FrameError(`a frame has the unknown opcode ${opcode}`);
      if (!this.#isFinal || payload > 125) throw new FrameError('a control frame is fragmented, or has over 125 bytes');
      return;
    }
    if (opcode > opcodes.binary) throw new FrameError(`a frame has the unknown opcode ${opcode}`);
    const continues = opcode === opcodes.continuation;
    if (!this.#hasFragments && (continues || !this.#isFinal)) throw new FrameError('a message has several frames');
    if (continues !== this.#isInMessage) {
      throw new FrameError(continues ? 'a frame continues no message' : 'a message begins within another');
    }
    if (!continues) this.#isStart = true;
    this.#isInMessage = true;
  }

  #readPayload(chunk: Buffer, offset: number): number {
    const left = this.#left ?? 0;
    const taken = Math.min(left, chunk.length - offset);
    this.#left = left - taken;
    if (this.#opcode >= opcodes.close) return taken;
    const part = chunk.subarray(offset, offset + taken);
    if (this.#isStart) this.#listener.onData?.(part, part.readUInt8(0) ^ this.#mask.readUInt8(0));
    else this.#listener.onData?.(part);
    this.#offset += taken;
    this.#isStart = false;
    return taken;
  }

  #endFrame(): void {
    this.#left = undefined;
    if (this.#opcode >= opcodes.close || !this.#isFinal) return;
    this.#isInMessage = false;
  }
}

/** As servers send it: without a mask. */
export function frameOf(opcode: number, payload: Buffer): Buffer {
  const { length } = payload;
  const header = length < 126 ? Buffer.alloc(2) : length < 65_536 ? Buffer.alloc(4) : Buffer.alloc(10);
  header.writeUInt8(0x80 | opcode, 0);
  if (length < 126) header.writeUInt8(length, 1);
  else if (length < 65_536) {
    header.writeUInt8(126, 1);
    header.writeUInt16BE(length, 2);
  } else {
    header.writeUInt8(127, 1);
    header.writeBigUInt64BE(BigInt(length), 2);
  }
  return Buffer.concat([header, payload]);
}

/** As clients send it. `payload`: at most 125 bytes. */
export function maskedFrameOf(opcode: number, payload: Buffer): Buffer {
  const mask = randomBytes(4);
  const body = payload.map((byte, i) => byte ^ mask.readUInt8(i % 4));
  return Buffer.concat([Buffer.of(0x80 | opcode, 0x80 | payload.length), mask, body]);
}

/** As a pod sends it on a channel of the exec protocol (`v5.channel.k8s.io`). */
export const channelMessage = (channel: number, text: string): Buffer =>
  frameOf(opcodes.binary, Buffer.concat([Buffer.of(channel), Buffer.from(text, 'utf8')]));

export function closeFrame(code: number): Buffer {
  const payload = Buffer.alloc(2);
  payload.writeUInt16BE(code, 0);
  return frameOf(opcodes.close, payload);
}
