import assert from 'node:assert/strict';
import type { Duplex } from 'node:stream';
import { channelMessage, closeFrame, FrameReader, frameOf, opcodes } from '../../../src/gateway/frames.ts';
import type { StreamKind, StreamOptions } from '../../../src/gateway/pod-call.ts';
import { PodStream, type StreamListener, type StreamResult } from '../../../src/gateway/stream.ts';
import { duplexPair, settlePairs as settle } from '../../support/duplex-pair.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const terminal: StreamOptions = {
  container: undefined,
  stdin: true,
  stdout: true,
  stderr: false,
  tty: true,
  command: ['sh'],
};
const plain: StreamOptions = { ...terminal, stdin: false, stderr: true, tty: false };

/** A masked frame, as clients send it; the mask is 0, so that its payload is readable. */
function fromClient(frame: Buffer): Buffer {
  const head = Buffer.from(frame.subarray(0, 2));
  head.writeUInt8(head.readUInt8(1) | 0x80, 1);
  return Buffer.concat([head, Buffer.alloc(4), frame.subarray(2)]);
}

/** A frame that is not the last of its message. */
function fragment(opcode: number, payload: string): Buffer {
  const frame = frameOf(opcode, Buffer.from(payload, 'latin1'));
  frame.writeUInt8(opcode, 0);
  return frame;
}

interface Setting {
  readonly kind?: StreamKind;
  readonly options?: StreamOptions;
  readonly protocol?: string;
  readonly idleAfterMs?: number;
  readonly listener?: StreamListener;
}

/** A stream between a client and an API server that the test plays. */
class Stage {
  readonly clock = new SimulatedClock();
  readonly client: Duplex;
  readonly pod: Duplex;
  readonly stream: PodStream;
  readonly results: StreamResult[] = [];
  #toClient = Buffer.alloc(0);
  #toPod = Buffer.alloc(0);

  constructor({
    kind = 'exec',
    options = terminal,
    protocol = 'v5.channel.k8s.io',
    idleAfterMs,
    listener,
  }: Setting = {}) {
    const [client, gatewayClient] = duplexPair();
    const [pod, upstream] = duplexPair();
    this.client = client;
    this.pod = pod;
    client.on('data', (chunk: Buffer) => {
      this.#toClient = Buffer.concat([this.#toClient, chunk]);
    });
    pod.on('data', (chunk: Buffer) => {
      this.#toPod = Buffer.concat([this.#toPod, chunk]);
    });
    client.on('end', () => client.end());
    this.stream = new PodStream({
      kind,
      options,
      protocol,
      client: gatewayClient,
      clientHead: Buffer.alloc(0),
      upstream,
      upstreamHead: Buffer.alloc(0),
      idleAfterMs,
      clock: this.clock,
      listener,
      onClosed: (result) => this.results.push(result),
    });
    this.stream.start();
  }

  /** What the client has got. */
  async received(): Promise<string> {
    await settle();
    return this.#toClient.toString('latin1');
  }

  async forwarded(): Promise<string> {
    await settle();
    return this.#toPod.toString('latin1');
  }

  /** What the pod has read of the client or of the gateway, without the frames: each message with its channel. */
  async typed(): Promise<string> {
    await settle();
    let typed = '';
    const reader = new FrameReader(true, {
      onData: (part) => {
        typed += reader.unmasked(part).toString('latin1');
      },
    });
    reader.read(this.#toPod);
    return typed;
  }

  /** The process of the pod ends. */
  async processEnds(exitCode = 130): Promise<void> {
    await settle();
    const status = { status: 'Failure', details: { causes: [{ reason: 'ExitCode', message: String(exitCode) }] } };
    if (!this.pod.destroyed) this.pod.end(channelMessage(3, JSON.stringify(status)));
    await settle();
  }

  /** The code of the end, and the exit code. */
  get outcomes(): unknown[] {
    return this.results.map(({ end, exitCode }) => [end?.code, exitCode]);
  }

  get podIsClosed(): boolean {
    return this.pod.destroyed || this.pod.readableEnded;
  }

  end(code: 'Expired' | 'Revoked' = 'Expired'): void {
    this.stream.end({ code, atMs: this.clock.now() });
  }
}

const text = (buffer: Buffer): string => buffer.toString('latin1');
const reason = 'access ended at 09:00 UTC: Expired; create a new request';
const failure = JSON.stringify({ metadata: {}, status: 'Failure', message: reason, reason: 'Forbidden', code: 403 });

describe('a stream between a client and a pod', () => {
  it('passes the bytes of both directions on unchanged', async () => {
    const stage = new Stage();
    const output = Buffer.concat([channelMessage(1, 'out'), frameOf(opcodes.ping, Buffer.from('p'))]);
    stage.pod.write(output);
    assert.equal(await stage.received(), text(output));
    const input = fromClient(channelMessage(0, 'in'));
    stage.client.write(input);
    assert.equal(await stage.forwarded(), text(input));
  });

  it('ends with the command, and tells its exit code and the bytes of both directions', async () => {
    const stage = new Stage();
    stage.client.write(fromClient(channelMessage(0, 'four')));
    await settle();
    const status = { status: 'Failure', details: { causes: [{ reason: 'ExitCode', message: '3' }] } };
    const outcome = channelMessage(3, JSON.stringify(status));
    stage.pod.end(Buffer.concat([channelMessage(1, 'out'), outcome, closeFrame(1000)]));
    assert.match(await stage.received(), /ExitCode/);
    assert.deepEqual(stage.results, [
      { end: undefined, bytesIn: 5, bytesOut: 4 + 1 + JSON.stringify(status).length, exitCode: 3 },
    ]);
    assert.equal(stage.clock.pendingTimers, 0);
  });

  it('reads the exit code of a success, also in fragments', async () => {
    const stage = new Stage();
    const whole = channelMessage(3, '{"status":"Success"}');
    const first = Buffer.concat([Buffer.from([0x02, 5]), whole.subarray(2, 7)]);
    const rest = frameOf(opcodes.continuation, whole.subarray(7));
    stage.pod.end(Buffer.concat([first, rest]));
    await settle();
    assert.equal(stage.results[0]?.exitCode, 0);
  });

  it('ends when the client goes', async () => {
    const stage = new Stage();
    stage.client.destroy();
    await stage.processEnds();
    assert.equal(stage.podIsClosed, true);
    assert.equal(stage.results.length, 1);
    assert.equal(stage.clock.pendingTimers, 0);
  });

  describe('that the gateway ends', () => {
    it('tells a terminal on its output, then by an error, then closes', async () => {
      const stage = new Stage();
      stage.end();
      const line = channelMessage(1, `\r\n[drawbridge] ${reason}\r\n`);
      assert.equal(await stage.received(), text(Buffer.concat([line, channelMessage(3, failure), closeFrame(1000)])));
      await stage.processEnds();
      assert.deepEqual(stage.outcomes, [['Expired', 130]]);
      assert.equal(stage.clock.pendingTimers, 0);
    });

    it('tells a command without a terminal on its error output', async () => {
      const stage = new Stage({ options: plain });
      stage.end();
      const line = channelMessage(2, `[drawbridge] ${reason}\n`);
      assert.equal(await stage.received(), text(Buffer.concat([line, channelMessage(3, failure), closeFrame(1000)])));
    });

    it('writes to no output that the client did not ask for', async () => {
      const stage = new Stage({ options: { ...plain, stderr: false } });
      stage.end();
      assert.equal(await stage.received(), text(Buffer.concat([channelMessage(3, failure), closeFrame(1000)])));
    });

    it('only closes a forwarded port, which can show no reason', async () => {
      const stage = new Stage({ kind: 'portforward' });
      stage.end();
      assert.equal(await stage.received(), text(closeFrame(1000)));
    });

    it('passes nothing more to the pod', async () => {
      const stage = new Stage();
      stage.end();
      stage.client.write(fromClient(channelMessage(0, 'late')));
      await stage.clock.advance(3000);
      assert.doesNotMatch(await stage.typed(), /late/);
    });

    it('counts the first reason only', async () => {
      const stage = new Stage();
      stage.end('Revoked');
      stage.end('Expired');
      assert.equal((await stage.received()).split('access ended').length, 3, 'on the terminal and in the error');
      assert.match(await stage.received(), /Revoked/);
    });

    const restPasses = async (setting: Setting): Promise<void> => {
      const stage = new Stage(setting);
      const [message, next] = [channelMessage(1, 'message'), channelMessage(1, 'next')];
      stage.pod.write(message.subarray(0, 4));
      await settle();
      stage.end();
      assert.equal(await stage.received(), text(message.subarray(0, 4)));
      stage.pod.write(Buffer.concat([message.subarray(4), next.subarray(0, 3)]));
      const received = await stage.received();
      assert.equal(received.startsWith(text(message)), true);
      assert.match(received, /access ended/);
      assert.doesNotMatch(received, /next|ne$/);
    };
    it('lets the rest of a message pass first, and nothing that follows it', () => restPasses({}));
    it('lets the rest of a message pass first if no message can end the process', () => restPasses({ options: plain }));

    it('cuts a message that does not end within 150 ms', async () => {
      const stage = new Stage();
      stage.pod.write(channelMessage(1, 'message').subarray(0, 4));
      await settle();
      stage.end();
      await stage.clock.advance(149);
      assert.equal(stage.client.destroyed || stage.client.readableEnded, false);
      await stage.clock.advance(1);
      await settle();
      assert.equal(stage.client.destroyed || stage.client.readableEnded, true);
      await stage.clock.advance(3000);
      await settle();
      assert.deepEqual(stage.outcomes, [['Expired', undefined]]);
      assert.doesNotMatch(await stage.received(), /access ended/);
    });

    it('waits 1 s for a client that does not read, and cuts it then', async () => {
      const stage = new Stage();
      stage.client.pause();
      stage.pod.write(channelMessage(1, 'x'.repeat(60_000)));
      stage.pod.write(channelMessage(1, 'x'.repeat(60_000)));
      await settle();
      stage.end();
      await stage.processEnds();
      await settle();
      await stage.clock.advance(999);
      assert.equal(stage.results.length, 0);
      await stage.clock.advance(1);
      await settle();
      assert.equal(stage.results.length, 1);
    });
  });

  describe('of an exec that ends', () => {
    const closesStdin = '\xff\0';
    const piped: StreamOptions = { ...plain, stdin: true };
    const ways: readonly [how: string, end: (stage: Stage) => void][] = [
      ['by the gateway', (stage) => stage.end()],
      ['because the client goes', (stage) => void stage.client.destroy()],
      ['because the client closes its side', (stage) => void stage.client.end()],
      ['by a close frame', (stage) => void stage.client.write(fromClient(closeFrame(1000)))],
      ['by a broken frame', (stage) => void stage.client.write(channelMessage(0, 'x'))],
    ];
    for (const [how, end] of ways) {
      it(`${how}, types Ctrl-C three times before the first Ctrl-D`, async () => {
        const stage = new Stage();
        end(stage);
        assert.equal(await stage.typed(), '\0\x03');
        await stage.clock.advance(49);
        assert.equal(await stage.typed(), '\0\x03');
        await stage.clock.advance(100);
        assert.equal(await stage.typed(), '\0\x03'.repeat(3));
        await stage.clock.advance(1);
        assert.equal(await stage.typed(), `${'\0\x03'.repeat(3)}\0\x04`);
      });

      it(`${how}, closes the input of a command without a terminal`, async () => {
        const stage = new Stage({ options: piped });
        end(stage);
        assert.equal(await stage.typed(), closesStdin);
        await stage.clock.advance(499);
        assert.equal(stage.podIsClosed, false);
        await stage.clock.advance(1);
        await settle();
        assert.equal(stage.podIsClosed, true);
      });
    }

    it('by a close frame after the rest of a message, gets that rest, then Ctrl-C, and not the close frame', async () => {
      const stage = new Stage();
      const [message, close] = [fromClient(channelMessage(0, 'abc')), fromClient(closeFrame(1000))];
      stage.client.write(message.subarray(0, 8));
      await settle();
      stage.client.write(Buffer.concat([message.subarray(8), close, fromClient(channelMessage(0, 'late'))]));
      assert.equal(await stage.typed(), '\0abc\0\x03');
      assert.equal((await stage.forwarded()).includes(text(close)), false);
    });

    it('stops to type once the process has ended, and tells its exit code', async () => {
      const stage = new Stage();
      stage.end();
      await stage.processEnds(130);
      await stage.clock.advance(3000);
      assert.equal(await stage.typed(), '\0\x03');
      assert.deepEqual(stage.outcomes, [['Expired', 130]]);
    });

    it('types Ctrl-\\ and Ctrl-Z to a process that stays, and gives up within 2.5 s, without an exit code', async () => {
      const stage = new Stage();
      stage.end();
      await settle();
      for (let i = 0; i < 250 && stage.results.length === 0; i++) {
        await stage.clock.advance(10);
        await settle();
      }
      const keys = (await stage.typed()).replaceAll('\0', '');
      assert.equal(keys, `\x03\x03\x03\x04\x03\x04\x1c\x03\x04\x1a\x04\x04${'\x03\x04'.repeat(4)}${'\x04'.repeat(12)}`);
      assert.deepEqual(stage.outcomes, [['Expired', undefined]]);
      assert.equal(stage.clock.pendingTimers, 0);
    });

    it('tells the client the end before the process has ended, and nothing that the process still says', async () => {
      const stage = new Stage();
      stage.end();
      assert.match(await stage.received(), /access ended/);
      stage.pod.write(channelMessage(1, 'secret'));
      assert.doesNotMatch(await stage.received(), /secret/);
    });

    it('records nothing that the process says after the end', async () => {
      let heard = '';
      const listener: StreamListener = {
        fromPod: (part) => {
          heard += part.toString('latin1');
        },
        fromClient: () => {},
        note: () => {},
      };
      const stage = new Stage({ listener });
      stage.end();
      await settle();
      stage.pod.write(channelMessage(1, 'secret'));
      await settle();
      assert.equal(heard, '');
      assert.equal(stage.results.length, 0);
    });

    it('waits for the process, although the client read nothing', async () => {
      const stage = new Stage();
      stage.client.pause();
      for (let sent = 0; sent < 20; sent++) stage.pod.write(channelMessage(1, 'x'.repeat(30_000)));
      await settle();
      stage.end();
      await stage.processEnds(7);
      await stage.clock.advance(1000);
      await settle();
      assert.equal(stage.results[0]?.exitCode, 7);
    });

    const silent: readonly [string, Setting, ((stage: Stage) => void)?][] = [
      ['to the main process of a container', { kind: 'attach' }],
      ['to a forwarded port', { kind: 'portforward' }],
      ['without an input', { options: { ...terminal, stdin: false } }],
      ['to a command of an older client without a terminal', { options: piped, protocol: 'v4.channel.k8s.io' }],
      ['within a message', {}, (stage) => void stage.client.write(fromClient(channelMessage(0, 'abc')).subarray(0, 8))],
    ];
    for (const [what, setting, before] of silent) {
      it(`types nothing ${what}`, async () => {
        const stage = new Stage(setting);
        before?.(stage);
        const forwarded = await stage.forwarded();
        stage.end();
        await settle();
        assert.equal(await stage.forwarded(), forwarded);
        assert.equal(stage.results.length, 1);
        assert.equal(stage.clock.pendingTimers, 0);
      });
    }

    it('types nothing after the command has ended by itself', async () => {
      const stage = new Stage();
      await stage.processEnds(0);
      assert.equal(await stage.typed(), '');
      assert.deepEqual(stage.results[0]?.exitCode, 0);
    });
  });

  describe('with a client that breaks the protocol', () => {
    const broken: readonly [string, Buffer][] = [
      ['by an unmasked frame', channelMessage(0, 'x')],
      ['by an unknown channel', fromClient(channelMessage(7, 'x'))],
      ['by writing on the channel for output', fromClient(channelMessage(1, 'x'))],
      ['by a fragment, which the API server would read as a message', fromClient(fragment(opcodes.binary, '\x04{'))],
      ['by the rest of a message', fromClient(fragment(opcodes.continuation, '\0x'))],
    ];
    for (const [how, bytes] of broken) {
      it(`${how}, ends with BadFrame, and passes nothing on`, async () => {
        const stage = new Stage({ options: plain });
        stage.client.write(bytes);
        assert.equal(await stage.forwarded(), '');
        assert.match(await stage.received(), /BadFrame/);
        assert.equal(stage.results[0]?.end?.code, 'BadFrame');
      });
    }

    it('knows neither channels nor whole messages in a forwarded port', async () => {
      const stage = new Stage({ kind: 'portforward' });
      stage.client.write(fromClient(fragment(opcodes.binary, 'x')));
      stage.client.write(fromClient(frameOf(opcodes.continuation, Buffer.from('y'))));
      stage.client.write(fromClient(channelMessage(7, 'x')));
      assert.notEqual(await stage.forwarded(), '');
    });
  });

  it('reads no faster from the pod than the client reads', async () => {
    const stage = new Stage();
    stage.client.pause();
    let written = 0;
    while (written < 100 && stage.pod.write(channelMessage(1, 'x'.repeat(30_000)))) {
      written++;
      await settle();
    }
    assert.ok(written < 100, 'the pod must wait');
    stage.client.resume();
    await settle();
    assert.equal(stage.pod.writableNeedDrain, false);
  });

  describe('with a listener that must catch up', () => {
    /** Has caught up after `open` was called. */
    class Behind implements StreamListener {
      open: () => void = () => {};
      drained: Promise<void> | undefined = new Promise((resolve) => {
        this.open = () => {
          this.drained = undefined;
          resolve();
        };
      });
      fromPod(): void {}
      fromClient(): void {}
      note(): void {}
    }
    const message = channelMessage(1, 'x'.repeat(30_000));

    it('reads no more from either side until it has caught up', async () => {
      const listener = new Behind();
      const stage = new Stage({ listener });
      stage.pod.write(message);
      stage.client.write(fromClient(channelMessage(0, 'first')));
      await settle();
      stage.pod.write(message);
      stage.client.write(fromClient(channelMessage(0, 'next')));
      assert.equal((await stage.received()).length, message.length);
      assert.doesNotMatch(await stage.forwarded(), /next/);
      listener.open();
      assert.equal((await stage.received()).length, 2 * message.length);
      assert.match(await stage.forwarded(), /next/);
    });

    it('waits for the client, too', async () => {
      const listener = new Behind();
      const stage = new Stage({ listener });
      stage.client.pause();
      for (let sent = 0; sent < 10; sent++) stage.pod.write(message);
      await settle();
      listener.open();
      await settle();
      assert.equal(stage.pod.writableNeedDrain, true);
      stage.client.resume();
      assert.equal((await stage.received()).length, 10 * message.length);
    });

    it('ends nevertheless, after the message that has begun', async () => {
      const stage = new Stage({ listener: new Behind() });
      stage.pod.write(message.subarray(0, 10_000));
      await settle();
      stage.end();
      stage.pod.write(message.subarray(10_000));
      assert.match(await stage.received(), /xxx.*access ended/s);
      await stage.processEnds();
      assert.equal(stage.results[0]?.end?.code, 'Expired');
    });
  });

  describe('that is idle', () => {
    it('ends after the limit without data in either direction', async () => {
      const stage = new Stage({ idleAfterMs: 15_000 });
      await stage.clock.advance(4_000);
      stage.pod.write(channelMessage(1, 'x'));
      await settle();
      await stage.clock.advance(14_999);
      assert.equal(stage.results.length, 0);
      await stage.clock.advance(1);
      assert.match(await stage.received(), /the session ended at 09:00 UTC: Idle; run the command again/);
    });

    it('does not count pings as data', async () => {
      const stage = new Stage({ idleAfterMs: 10_000 });
      await stage.clock.advance(9_000);
      stage.client.write(fromClient(frameOf(opcodes.ping, Buffer.alloc(0))));
      await settle();
      await stage.clock.advance(1_000);
      assert.match(await stage.received(), /Idle/);
    });
  });

  describe('whose client is silent', () => {
    it('is pinged every 20 s, and ends after 60 s without a byte', async () => {
      const stage = new Stage();
      await stage.clock.advance(20_000);
      assert.equal(await stage.received(), text(frameOf(opcodes.ping, Buffer.alloc(0))));
      await stage.clock.advance(39_999);
      assert.doesNotMatch(await stage.received(), /ended/);
      await stage.clock.advance(1);
      await stage.processEnds();
      assert.equal(stage.results[0]?.end?.code, 'ClientGone');
    });

    it('stays while the pod does not read what it sends, because then the gateway does not read its answers either', async () => {
      const stage = new Stage();
      stage.pod.pause();
      for (let sent = 0; sent < 20; sent++) stage.client.write(fromClient(channelMessage(0, 'x'.repeat(100))));
      const large = fromClient(frameOf(opcodes.binary, Buffer.alloc(100)));
      for (let sent = 0; sent < 2000; sent++) stage.client.write(large);
      await settle();
      for (let i = 0; i < 10; i++) await stage.clock.advance(20_000);
      assert.equal(stage.results.length, 0);
    });

    it('stays as long as it answers', async () => {
      const stage = new Stage();
      for (let i = 0; i < 10; i++) {
        await stage.clock.advance(20_000);
        stage.client.write(fromClient(frameOf(opcodes.pong, Buffer.alloc(0))));
        await settle();
      }
      assert.equal(stage.results.length, 0);
    });
  });

  describe('that warns', () => {
    it('shows a line on a terminal, between messages only', async () => {
      const stage = new Stage();
      const message = channelMessage(1, 'message');
      stage.pod.write(message.subarray(0, 4));
      await settle();
      stage.stream.warn('access ends in 2 minutes');
      assert.equal(await stage.received(), text(message.subarray(0, 4)));
      stage.pod.write(message.subarray(4));
      const line = channelMessage(1, '\r\n[drawbridge] access ends in 2 minutes\r\n');
      assert.equal(await stage.received(), text(Buffer.concat([message, line])));
    });

    it('writes nothing into the output of a command', async () => {
      const stage = new Stage({ options: plain });
      stage.stream.warn('access ends in 2 minutes');
      assert.equal(await stage.received(), '');
    });
  });
});
