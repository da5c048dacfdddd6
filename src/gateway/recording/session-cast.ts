import type { Clock } from '../../kit/clock.ts';
import { channels } from '../process-end.ts';
import type { StreamListener } from '../stream.ts';
import { type CastCode, castEvent, headerSize, parseTerminalSize, type TerminalSize, Utf8Decoder } from './cast.ts';

/** Gets the events of a session. Must not throw. */
export interface CastReader {
  /** A line of asciicast with its newline. */
  event(line: Buffer): void;
  /** The pod sent output that the events do not contain. `why`: a clause. */
  missed?(why: string): void;
  /** As `StreamListener.drained`. */
  readonly drained?: Promise<void> | undefined;
}

/** Bytes of a message with the size of a terminal; a longer one is ignored. */
const MAX_SIZE_TEXT = 256;

const podChannels: readonly number[] = [channels.stdout, channels.stderr, channels.error, channels.close];

/**
 * Converts the messages of one stream to events of asciicast, once for all readers. Without a
 * reader, it decodes only the sizes of the terminal.
 */
export class SessionCast implements StreamListener {
  /** When this object was created, epoch ms; the times of events count from here. */
  readonly startedAtMs: number;
  readonly #clock: Clock;
  /** As `startedAtMs`; monotonic. */
  readonly #startMs: number;
  readonly #withInput: boolean;
  readonly #readers = new Set<CastReader>();
  readonly #texts = { stdin: new Utf8Decoder(), stdout: new Utf8Decoder(), stderr: new Utf8Decoder() };
  /** Of the current messages from the pod and from the client. */
  #podChannel: number | undefined;
  #clientChannel: number | undefined;
  /** The current message with the size of the terminal, so far. */
  #sizeText = '';
  #size: TerminalSize = headerSize;
  #lastNote = '';

  /** `withInput`: what users type becomes events, too. */
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

  get lastNote(): string {
    return this.#lastNote;
  }

  /** Set while a reader must catch up. */
  get drained(): Promise<void> | undefined {
    for (const { drained } of this.#readers) if (drained !== undefined) return drained;
    return undefined;
  }

  /** Passes all later events to the reader. Returns a function that removes it. */
  add(reader: CastReader): () => void {
    this.#readers.add(reader);
    return () => void this.#readers.delete(reader);
  }

  /** `first`: the channel, if the part begins a message. */
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

  /** A warning, or the reason for the end, becomes a marker. */
  note(text: string): void {
    this.#lastNote = text;
    this.#event('m', text);
  }

  /** An event of now. */
  line(code: CastCode, text: string): Buffer {
    return Buffer.from(castEvent(this.#clock.monotonic() - this.#startMs, code, text));
  }

  #event(code: CastCode, text: string): void {
    if (text === '' || this.#readers.size === 0) return;
    const line = this.line(code, text);
    for (const reader of this.#readers) reader.event(line);
  }
}
