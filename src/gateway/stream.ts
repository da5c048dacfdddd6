// One stream of a session: bytes pass unchanged both ways, until one side or `end()` ends it.
//
//   client: open ── end() ──> ending ── reason, close frame ──> endSent ── it closes ──> closed
//   pod:    open ── no more bytes of the client ──> ending ── keys end the process ──> over
//
// A client that leaves goes from any state to `closed`. After `closed` and `over`: `onClosed`.

import type { Duplex } from 'node:stream';
import type { Cancel, Clock } from '../kit/clock.ts';
import { listIn, own } from '../kit/json-value.ts';
import { Flow } from './flow.ts';
import {
  channelMessage,
  closeFrame,
  FrameError,
  type FrameListener,
  FrameReader,
  frameOf,
  maskedFrameOf,
  opcodes,
} from './frames.ts';
import type { StreamKind, StreamOptions } from './pod-call.ts';
import { channels, type EndingMessage, endingMessages } from './process-end.ts';
import { endText, type StreamEnd } from './stream-end.ts';

/** The channels on which a client may send. */
const clientChannels: readonly number[] = [channels.stdin, channels.resize, channels.close];

/** How long `end` waits for the rest of a message from the pod. */
const PARTIAL_MESSAGE_MS = 150;
/** How long the client may take to close its connection after the close frame. */
const CLOSE_MS = 1000;
/** Interval of the checks whether the client still answers. kubectl itself pings every 5 s. */
const PING_MS = 20_000;
/** Without a byte from the client for this long, the stream ends with `ClientGone`. */
const GONE_MS = 60_000;
/** Bytes of the Status from which the exit code is read. */
const MAX_STATUS = 16 * 1024;

export interface StreamResult {
  /** Set only if the gateway ended the stream. */
  readonly end: StreamEnd | undefined;
  /** Bytes of messages to the pod, and from it. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Without one, the process may still run in the pod. */
  readonly exitCode: number | undefined;
}

/** Observes the messages that pass. Must not throw, and must not modify or keep a buffer. */
export interface StreamListener {
  /** `first`: the first byte of the message, if the part begins with it. */
  fromPod(part: Buffer, first: number | undefined): void;
  /** `read` copies the part without its mask; call it before `fromClient` returns. */
  fromClient(read: () => Buffer, first: number | undefined): void;
  /** A warning, or the reason of the end; the client may not be able to show it. */
  note(text: string): void;
  /** While set, each direction in which data arrives pauses until it resolves. Must not reject. */
  readonly drained?: Promise<void> | undefined;
}

interface PodStreamDeps {
  readonly kind: StreamKind;
  readonly options: StreamOptions;
  /** The subprotocol of the WebSocket. */
  readonly protocol: string;
  /** The head: bytes that came with its call. */
  readonly client: Duplex;
  readonly clientHead: Buffer;
  /** To the API server. The head: bytes that came with its answer. */
  readonly upstream: Duplex;
  readonly upstreamHead: Buffer;
  /** Ends the stream after this time without data in either direction. */
  readonly idleAfterMs: number | undefined;
  readonly clock: Clock;
  readonly listener?: StreamListener | undefined;
  /** Called once: the client is gone, and the process has ended or did not end in time. */
  readonly onClosed: (result: StreamResult) => void;
}

/**
 * Passes bytes on no faster than the receiver reads them, and parses their frames. Between complete
 * messages to the client, it inserts pings, warnings, and the reason of the end. It ends the
 * process of an exec after any end (`endingMessages`); the client neither delays nor sees that.
 */
export class PodStream {
  readonly #deps: PodStreamDeps;
  readonly #fromClient: FrameReader;
  readonly #fromPod: FrameReader;
  readonly #toPodFlow: Flow;
  readonly #toClientFlow: Flow;
  readonly #commandStatus = new CommandStatus();
  /** Frames for the client, sent once the current message from the pod is complete. */
  readonly #waiting: Buffer[] = [];
  #state: 'open' | 'ending' | 'endSent' | 'closed' = 'open';
  #pod: 'open' | 'ending' | 'over' = 'open';
  /** Only then may another message to the pod follow. */
  #isPodAtBoundary = true;
  #end: StreamEnd | undefined;
  /** The gateway does nothing more to end the process. */
  #isProcessLeft = false;
  #isFinished = false;
  #bytesIn = 0;
  #bytesOut = 0;
  /** When the client's last byte arrived, or reading from it was paused; monotonic. */
  #heardAtMs: number;
  /** When data last passed in either direction; monotonic. */
  #usedAtMs: number;
  #cancelPing: Cancel = () => {};
  #cancelIdle: Cancel = () => {};
  #cancelEnd: Cancel = () => {};
  #cancelProcess: Cancel = () => {};

  constructor(deps: PodStreamDeps) {
    const { clock, kind } = deps;
    this.#deps = deps;
    this.#toPodFlow = new Flow(deps.client, deps.upstream);
    this.#toClientFlow = new Flow(deps.upstream, deps.client);
    this.#heardAtMs = clock.monotonic();
    this.#usedAtMs = this.#heardAtMs;
    const hasChannels = kind !== 'portforward';
    const fromClient: FrameListener = {
      onData: (part, first) => {
        this.#bytesIn += part.length;
        this.#usedAtMs = clock.monotonic();
        if (hasChannels && first !== undefined && !clientChannels.includes(first))
          throw new FrameError(
            `the client sent a message on channel ${first}; it may use the channels ${clientChannels.join(', ')}`,
          );
        deps.listener?.fromClient(() => this.#fromClient.unmasked(part), first);
      },
    };
    // A fragment could carry input past the recording: the API server treats each frame as a
    // message whose first byte is the channel. So exec and attach may not send fragments.
    this.#fromClient = new FrameReader(true, fromClient, !hasChannels);
    this.#fromPod = new FrameReader(false, {
      onData: (part, first) => {
        if (hasChannels) this.#commandStatus.read(part, first);
        if (this.#isClientOver) return;
        this.#bytesOut += part.length;
        this.#usedAtMs = clock.monotonic();
        deps.listener?.fromPod(part, first);
      },
    });
  }

  start(): void {
    const { client, upstream, clientHead, upstreamHead } = this.#deps;
    for (const socket of [client, upstream]) socket.on('error', () => {});
    client.on('data', (chunk: Buffer) => this.#toPod(chunk));
    client.on('end', () => {
      if (this.#endingMessages().length > 0) this.#endProcess();
      else upstream.end();
    });
    client.on('close', () => this.#close());
    upstream.on('data', (chunk: Buffer) => this.#toClient(chunk));
    upstream.on('end', () => {
      if (this.#state === 'open') client.end();
    });
    upstream.on('close', () => {
      if (this.#state === 'open' && !client.writableEnded) client.destroy();
      this.#endPod();
    });
    // The client may have left while the call that started the process was open.
    if (client.destroyed) this.#close();
    if (upstreamHead.length > 0) this.#toClient(upstreamHead);
    if (clientHead.length > 0) this.#toPod(clientHead);
    if (this.#state === 'closed') return;
    this.#checkClient();
    this.#checkUse();
  }

  /** For a person at a terminal. Without one, does nothing: the line would mix with the output. */
  warn(text: string): void {
    const { kind, options } = this.#deps;
    if (this.#state !== 'open' || kind === 'portforward' || !options.tty || !options.stdout) return;
    this.#insert(channelMessage(channels.stdout, `\r\n[drawbridge] ${text}\r\n`));
    this.#deps.listener?.note(text);
  }

  /**
   * Stops the client's bytes. A client of exec or attach gets the reason, unless a message of the
   * pod stays incomplete or its connection is closing; a port-forward just closes.
   */
  end(end: StreamEnd): void {
    if (this.#state !== 'open') return;
    this.#state = 'ending';
    this.#end = end;
    this.#deps.listener?.note(endText(end));
    this.#toPodFlow.resumeNow();
    this.#endProcess();
    // No message can begin within another, so its rest passes first.
    if (this.#fromPod.isAtBoundary) {
      this.#sendEnd();
      return;
    }
    if (!this.#deps.client.writableNeedDrain) this.#toClientFlow.resumeNow();
    this.#cancelEnd = this.#deps.clock.schedule(PARTIAL_MESSAGE_MS, () => this.#sendEnd());
  }

  #toClient(chunk: Buffer): void {
    const { client, clock } = this.#deps;
    const flow = this.#toClientFlow;
    let boundary: number;
    try {
      boundary = this.#fromPod.read(chunk);
    } catch {
      // The reader has lost the boundaries of messages, so the reason cannot be inserted.
      this.#end ??= { code: 'BadFrame', atMs: clock.now() };
      client.destroy();
      return;
    }
    if (this.#pod === 'ending' && this.#commandStatus.isKnown) this.#endPod();
    if (this.#isClientOver) return;
    this.#waitForListener(flow);
    const isInterrupted = this.#state === 'ending' || this.#waiting.length > 0;
    if (boundary < 0 || !isInterrupted) {
      flow.pass(chunk);
      return;
    }
    flow.pass(chunk.subarray(0, boundary));
    if (this.#state === 'ending') {
      this.#sendEnd(true);
      return;
    }
    for (const frame of this.#waiting.splice(0)) flow.pass(frame);
    flow.pass(chunk.subarray(boundary));
  }

  #toPod(chunk: Buffer): void {
    const { clock } = this.#deps;
    this.#heardAtMs = clock.monotonic();
    if (this.#pod !== 'open') return;
    let boundary: number;
    try {
      boundary = this.#fromClient.read(chunk);
    } catch {
      this.end({ code: 'BadFrame', atMs: clock.now() });
      return;
    }
    this.#waitForListener(this.#toPodFlow);
    if (boundary >= 0) this.#isPodAtBoundary = true;
    if (this.#fromClient.isClosed && this.#endingMessages().length > 0) {
      // At a close frame, the API server would close the stream, and the process would stay.
      this.#toPodFlow.pass(chunk.subarray(0, Math.max(0, boundary)));
      this.#endProcess();
      return;
    }
    this.#toPodFlow.pass(chunk);
    this.#isPodAtBoundary = this.#fromClient.isAtBoundary;
  }

  #waitForListener(flow: Flow): void {
    const drained = this.#deps.listener?.drained;
    if (this.#state === 'open' && drained !== undefined) flow.waitFor(drained);
  }

  #insert(frame: Buffer): void {
    if (this.#fromPod.isAtBoundary) this.#deps.client.write(frame);
    else this.#waiting.push(frame);
  }

  get #isClientOver(): boolean {
    return this.#state === 'endSent' || this.#state === 'closed';
  }

  /** Stops the client's bytes, ends the process of an exec, and then closes the pod's side. */
  #endProcess(): void {
    if (this.#pod !== 'open') return;
    this.#pod = 'ending';
    this.#sendToProcess(this.#endingMessages());
  }

  #endingMessages(): readonly EndingMessage[] {
    const { kind, options, protocol } = this.#deps;
    // The main process of the container, which attach reaches, is not the user's to end.
    const canEnd = kind === 'exec' && this.#isPodAtBoundary && !this.#commandStatus.isKnown;
    return canEnd ? endingMessages(options, protocol) : [];
  }

  #sendToProcess([next, ...rest]: readonly EndingMessage[]): void {
    const { upstream, clock } = this.#deps;
    if (!next) {
      this.#isProcessLeft = true;
      // The rest of the current message may still have to pass to the client.
      if (this.#state !== 'ending') this.#endPod();
      return;
    }
    upstream.write(maskedFrameOf(opcodes.binary, next.message));
    this.#cancelProcess = clock.schedule(next.pauseMs, () => this.#sendToProcess(rest));
  }

  #endPod(): void {
    if (this.#pod === 'over') return;
    this.#pod = 'over';
    this.#cancelProcess();
    this.#deps.upstream.destroy();
    this.#finish();
  }

  /** After an incomplete message, only destroys the connection. */
  #sendEnd(isComplete = this.#fromPod.isAtBoundary): void {
    const { client, kind, options, clock } = this.#deps;
    const end = this.#end;
    if (this.#state !== 'ending' || !end) return;
    this.#state = 'endSent';
    this.#cancelEnd();
    if (this.#isProcessLeft) this.#endPod();
    // The status of the command may follow output that the client has not read.
    this.#toClientFlow.resumeNow();
    if (!isComplete || client.writableEnded) {
      client.destroy();
      return;
    }
    const frames = [closeFrame(1000)];
    if (kind !== 'portforward') {
      const text = endText(end);
      const [channel, line] = options.tty
        ? [channels.stdout, `\r\n[drawbridge] ${text}\r\n`]
        : [channels.stderr, `[drawbridge] ${text}\n`];
      frames.unshift(channelMessage(channels.error, failure(text)));
      if (options.tty ? options.stdout : options.stderr) frames.unshift(channelMessage(channel, line));
    }
    client.end(Buffer.concat(frames));
    this.#cancelEnd = clock.schedule(CLOSE_MS, () => client.destroy());
  }

  /** A half-open connection would otherwise stay for hours. */
  #checkClient(): void {
    const { clock } = this.#deps;
    this.#cancelPing = clock.schedule(PING_MS, () => {
      // Reading pauses while the pod or the listener is behind: such silence is not the client's.
      if (this.#deps.client.isPaused()) this.#heardAtMs = clock.monotonic();
      const silentMs = clock.monotonic() - this.#heardAtMs;
      if (silentMs >= GONE_MS) {
        this.end({ code: 'ClientGone', atMs: clock.now() });
        return;
      }
      if (silentMs >= PING_MS && !this.#deps.client.writableEnded) this.#insert(frameOf(opcodes.ping, Buffer.alloc(0)));
      this.#checkClient();
    });
  }

  #checkUse(): void {
    const { clock, idleAfterMs } = this.#deps;
    if (idleAfterMs === undefined) return;
    const leftMs = this.#usedAtMs + idleAfterMs - clock.monotonic();
    if (leftMs <= 0) this.end({ code: 'Idle', atMs: clock.now() });
    else this.#cancelIdle = clock.schedule(leftMs, () => this.#checkUse());
  }

  #close(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    for (const cancel of [this.#cancelPing, this.#cancelIdle, this.#cancelEnd]) cancel();
    this.#toClientFlow.resumeNow();
    this.#endProcess();
    if (this.#isProcessLeft) this.#endPod();
    this.#finish();
  }

  #finish(): void {
    if (this.#state !== 'closed' || this.#pod !== 'over' || this.#isFinished) return;
    this.#isFinished = true;
    const { exitCode } = this.#commandStatus;
    this.#deps.onClosed({ end: this.#end, bytesIn: this.#bytesIn, bytesOut: this.#bytesOut, exitCode });
  }
}

/** Reads the exit code from the Status that the API server sends last, on channel `error`. */
class CommandStatus {
  exitCode: number | undefined;
  /** The Status has begun to arrive: the process has ended, or did not start. */
  isKnown = false;
  #text = '';
  #isError = false;

  /** `first`: the channel, if the part begins a message. */
  read(part: Buffer, first: number | undefined): void {
    if (first !== undefined) this.#isError = first === channels.error;
    this.isKnown ||= this.#isError && part.length > (first === undefined ? 0 : 1);
    if (!this.#isError || this.#text.length + part.length > MAX_STATUS) return;
    this.#text += part.toString('latin1', first === undefined ? 0 : 1);
    this.exitCode = exitCodeIn(this.#text);
  }
}

function exitCodeIn(text: string): number | undefined {
  let status: unknown;
  try {
    status = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (own(status, 'status') === 'Success') return 0;
  const causes = listIn(own(status, 'details'), 'causes');
  const code = Number(
    own(
      causes.find((cause) => own(cause, 'reason') === 'ExitCode'),
      'message',
    ),
  );
  return Number.isInteger(code) ? code : undefined;
}

/** A Status that the client prints as its error, after which it exits with 1. */
const failure = (message: string): string =>
  JSON.stringify({ metadata: {}, status: 'Failure', message, reason: 'Forbidden', code: 403 });
