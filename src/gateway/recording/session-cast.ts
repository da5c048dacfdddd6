import type { Clock } from '../../kit/clock.ts';
import type { StreamListener } from '../stream.ts';
import { type CastCode, castEvent, headerSize, parseTerminalSize, type TerminalSize, Utf8Decoder } from './cast.ts';

/** Gets the events of a session. Its methods do not throw. */
export interface CastReader {
  /** One event, as a line of asciicast with its newline. */
  event(line: Buffer): void;
  /** The pod sent output that the events do not contain. `why`: a clause. */
  missed?(why: string): void;
  /** As `StreamListener.drained`. */
  readonly drained?: Promise<void> | undefined;
}

/** Maximum size of a message with the size of a terminal, bytes; the gateway ignores a longer one. */
const MAX_SIZE_TEXT = 256;

/** The channels of the exec protocol: the first byte of each message. */
const channels = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;
/** The channels on which a pod sends. */
const podChannels: readonly number[] = [channels.stdout, channels.stderr, channels.error, channels.close];

/**
 * Converts the messages of one stream to events of asciicast, once for all readers. The times of events count from the creation of this
 * object. While there is no reader, it decodes the sizes of the terminal only.
 */
export class SessionCast implements StreamListener {
  /** When this object was created, epoch ms. */
  readonly startedAtMs: number;
  readonly #clock: Clock;
  /** As `startedAtMs`, monotonic milliseconds. */
  readonly #startMs: number;
  readonly #withInput: boolean;
  readonly #readers = new Set<CastReader>();
  readonly #texts = { stdin: new Utf8Decoder(), stdout: new Utf8Decoder(), stderr: new Utf8Decoder() };
  /** The channels of the current messages from the pod and from the client; undefined before the first. */
  #podChannel: number | undefined;
  #clientChannel: number | undefined;
  /** What has arrived of the current message with the size of the terminal. */
  #sizeText = '';
  #size: TerminalSize = headerSize;
  #lastNote = '';

  /** `withInput`: whether what users type becomes events, too. */
  constructor(clock: Clock, withInput: boolean) {
    this.#clock = clock;
    this.#withInput = withInput;
    this.startedAtMs = clock.now();
    this.#startMs = clock.monotonic();
  }

  /** The size that the client named last; before that, `headerSize`. */
  get size(): TerminalSize {
    return this.#size;
  }

  /** The text of the last call of `note`; empty before the first call. */
  get lastNote(): string {
    return this.#lastNote;
  }

  /** The `drained` of a reader that must catch up; undefined if all readers can take more. */
  get drained(): Promise<void> | undefined {
    for (const { drained } of this.#readers) if (drained !== undefined) return drained;
    return undefined;
  }

  /** Passes all later events to the reader. Returns a function that removes the reader. */
  add(reader: CastReader): () => void {
    this.#readers.add(reader);
    return () => void this.#readers.delete(reader);
  }

  /** A part of a message from the pod. `first`: the channel if the part begins a message; otherwise undefined. */
  fromPod(part: Buffer, first: number | undefined): void {
    if (first !== undefined) {
      this.#podChannel = first;
      if (!podChannels.includes(first)) {
        for (const reader of this.#readers) reader.missed?.(`the pod sent a message on the unknown channel ${first}`);
      }
    }
    if (this.#readers.size === 0) return;
    const data = first === undefined ? part : part.subarray(1);
    if (this.#podChannel === channels.stdout) this.#event('o', this.#texts.stdout.read(data));
    else if (this.#podChannel === channels.stderr) this.#event('o', this.#texts.stderr.read(data));
  }

  /**
   * A part of a message from the client, which `read` copies without its mask. `first`: the channel if the part begins a message; otherwise
   * undefined.
   */
  fromClient(read: () => Buffer, first: number | undefined): void {
    if (first !== undefined) {
      this.#clientChannel = first;
      this.#sizeText = '';
    }
    const isInput = this.#clientChannel === channels.stdin && this.#withInput && this.#readers.size > 0;
    if (!isInput && this.#clientChannel !== channels.resize) return;
    const data = first === undefined ? read() : read().subarray(1);
    if (isInput) {
      this.#event('i', this.#texts.stdin.read(data));
      return;
    }
    if (this.#sizeText.length + data.length > MAX_SIZE_TEXT) return;
    this.#sizeText += data.toString('latin1');
    const size = parseTerminalSize(this.#sizeText);
    if (!size) return;
    this.#size = size;
    this.#event('r', `${size.width}x${size.height}`);
  }

  /** Adds a warning, or the reason for the end of the session, as a marker. */
  note(text: string): void {
    this.#lastNote = text;
    this.#event('m', text);
  }

  /** An event at the present time, as a line. */
  line(code: CastCode, text: string): Buffer {
    return Buffer.from(castEvent(this.#clock.monotonic() - this.#startMs, code, text));
  }

  #event(code: CastCode, text: string): void {
    if (text === '' || this.#readers.size === 0) return;
    const line = this.line(code, text);
    for (const reader of this.#readers) reader.event(line);
  }
}
