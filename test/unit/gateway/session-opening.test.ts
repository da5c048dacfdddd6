import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { type Duplex, Readable } from 'node:stream';
import type { Journal } from '../../../src/audit/journal.ts';
import type { AuditRecord } from '../../../src/audit/record.ts';
import { refuseUpgrade } from '../../../src/gateway/answers.ts';
import { channelMessage } from '../../../src/gateway/frames.ts';
import { LiveViews } from '../../../src/gateway/live-views.ts';
import type { StreamDecision } from '../../../src/gateway/pod-call.ts';
import { Recorder } from '../../../src/gateway/recording/recorder.ts';
import type { RecordingSink } from '../../../src/gateway/recording/sink.ts';
import { SessionAudit } from '../../../src/gateway/session-audit.ts';
import { SessionOpening } from '../../../src/gateway/session-opening.ts';
import { Sessions } from '../../../src/gateway/sessions.ts';
import type { Answer } from '../../../src/gateway/upstream.ts';
import { CodedError } from '../../../src/kit/errors.ts';
import { silentLog } from '../../../src/kube/log.ts';
import type { Log } from '../../../src/observe/log.ts';
import { duplexPair, settlePairs as settle } from '../../support/duplex-pair.ts';
import { GatewayCluster } from '../../support/gateway-cluster.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const log = silentLog as unknown as Log;
const minute = 60_000;
const decision: StreamDecision = {
  kind: 'stream',
  stream: 'exec',
  target: '/api/v1/namespaces/payments/pods/web-0/exec?command=sh',
  options: { container: undefined, stdin: true, stdout: true, stderr: false, tty: true, command: ['sh'] },
};
const protocol = 'v5.channel.k8s.io';

class Stage {
  readonly clock = new SimulatedClock();
  readonly cluster = new GatewayCluster(this.clock);
  readonly sessions = new Sessions(this.cluster.grants, this.clock);
  readonly lines: AuditRecord[] = [];
  readonly pod: Duplex;
  readonly client: Duplex;
  /** The targets of the calls of the API server. */
  readonly calls: string[] = [];
  /** While set, the sink or the API server wait for it. */
  sinkWaits: Promise<void> | undefined;
  serverWaits: Promise<void> | undefined;
  journalFails = false;
  chosen = protocol;
  answer: Answer;
  #received = '';
  readonly #gatewayClient: Duplex;
  readonly #opening: SessionOpening;
  /** What was told to the AccessSession. */
  readonly objects: string[] = [];
  /** Settles when the API server has answered its creation. */
  objectWaits: Promise<void> | undefined;

  constructor(record?: 'Required' | 'BestEffort') {
    const [pod, upstream] = duplexPair();
    const [client, gatewayClient] = duplexPair();
    [this.pod, this.client, this.#gatewayClient] = [pod, client, gatewayClient];
    client.on('data', (part: Buffer) => {
      this.#received += part.toString('latin1');
    });
    client.on('end', () => client.end());
    pod.resume();
    const session = { via: 'Gateway', ...(record ? { record } : {}) } as const;
    this.cluster.open(this.clock.now() + 10 * minute, { session });
    const stage = this;
    this.answer = {
      kind: 'upgraded',
      get headers() {
        return { 'sec-websocket-protocol': stage.chosen };
      },
      socket: upstream,
      head: Buffer.alloc(0),
    };
    const journal = {
      append: async (line: AuditRecord) => {
        if (this.journalFails) throw new Error('no space');
        this.lines.push(line);
      },
    } as unknown as Journal;
    const take = async (): Promise<void> => this.sinkWaits;
    const sink: RecordingSink = {
      flushMs: 1000,
      async create() {
        await take();
        return { append: take, close: take };
      },
      read: async () => undefined,
    };
    this.#opening = new SessionOpening({
      sessions: this.sessions,
      upstream: {
        open: async (target, { signal }) => {
          this.calls.push(target);
          await this.serverWaits;
          signal.throwIfAborted();
          return this.answer;
        },
      },
      recorder: new Recorder({ sink, journal, clock: this.clock, log, onLost: () => {} }),
      objects: {
        begin: async () => {
          await this.objectWaits;
          this.objects.push('created');
        },
        end: () => void (this.objects.at(-1) === 'ended' || this.objects.push('ended')),
      },
      views: new LiveViews(this.clock),
      audit: new SessionAudit(journal, log),
      clock: this.clock,
    });
  }

  /** Asks for the stream. Resolves once it is open or refused. */
  async open(offered = protocol): Promise<void> {
    const { namespace, name } = this.cluster.grant;
    const grant = this.cluster.grants.find(namespace, name);
    assert.ok(!('status' in grant));
    const request = { headers: { 'sec-websocket-protocol': offered } } as unknown as IncomingMessage;
    const caller = { username: 'alice', uid: '', groups: [] };
    const call = { request, socket: this.#gatewayClient, head: Buffer.alloc(0) };
    const refusal = await this.#opening.open(call, { caller, grant }, decision);
    if (refusal) refuseUpgrade(this.#gatewayClient, refusal);
  }

  /** Begins to open, and waits for one part. Resolves to what lets it go on until it is open or refused. */
  async openAndWait(part: 'sinkWaits' | 'serverWaits' | 'objectWaits'): Promise<() => Promise<void>> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this[part] = promise;
    const opened = this.open();
    await settle();
    return () => {
      resolve();
      return opened;
    };
  }

  disconnect(): void {
    this.#gatewayClient.destroy();
  }

  /** Waits for as long as the gateway tries to end the process. */
  async processStays(): Promise<void> {
    for (let i = 0; i < 40; i++) {
      await this.clock.advance(100);
      await settle();
    }
  }

  async received(): Promise<string> {
    await settle();
    return this.#received;
  }

  get verdicts(): string[] {
    return this.lines.map(({ verdict, code }) => (code === undefined ? verdict : `${verdict} ${code}`));
  }
}

describe('the opening of a session', () => {
  it('writes its audit line, calls the API server, and only then answers the client', async () => {
    const stage = new Stage();
    const goOn = await stage.openAndWait('serverWaits');
    assert.deepEqual([stage.verdicts, stage.calls, await stage.received()], [['opened'], [decision.target], '']);
    await goOn();
    assert.match(await stage.received(), /^HTTP\/1\.1 101 Switching Protocols\r\n/);
  });

  describe('with a recording that is required', () => {
    it('waits until its header is durable: before, no call reaches the API server, and no byte the client', async () => {
      const stage = new Stage('Required');
      const goOn = await stage.openAndWait('sinkWaits');
      stage.client.write('early');
      await settle();
      await stage.clock.advance(4_999);
      assert.deepEqual([stage.calls, stage.verdicts, await stage.received()], [[], [], '']);
      await goOn();
      assert.deepEqual(stage.verdicts.slice(0, 2), ['recorded', 'opened']);
      assert.match(await stage.received(), /^HTTP\/1\.1 101 .*this session is recorded/s);
    });

    it('is refused after 5 s if its sink hangs, and takes no place of the grant', async () => {
      const stage = new Stage('Required');
      stage.sinkWaits = new Promise(() => {});
      const opened = stage.open();
      await settle();
      assert.equal(stage.sessions.count, 1);
      await stage.clock.advance(5_000);
      await opened;
      assert.match(await stage.received(), /^HTTP\/1\.1 503 .*the gateway cannot store one now/s);
      assert.deepEqual(stage.calls, []);
      assert.deepEqual(stage.verdicts, ['unrecorded RecordingLost', 'denied RecorderUnavailable']);
      assert.equal(stage.sessions.count, 0);
    });

    it('opens nothing for a client that has gone meanwhile', async () => {
      const stage = new Stage('Required');
      const goOn = await stage.openAndWait('sinkWaits');
      stage.disconnect();
      await settle();
      await goOn().catch(() => {});
      assert.equal(await stage.received(), '');
      assert.equal(stage.sessions.count, 0);
      assert.deepEqual(stage.verdicts.at(-1), 'recorded', 'the recording is complete');
    });

    it('ends at once when the sink hangs later, with the reason', async () => {
      const stage = new Stage('Required');
      await stage.open();
      stage.sinkWaits = new Promise(() => {});
      stage.pod.write(channelMessage(1, 'x'));
      await settle();
      await stage.clock.advance(6_000);
      assert.match(await stage.received(), /the session ended at .*: RecordingLost/);
      await stage.processStays();
      assert.equal(stage.pod.readableEnded, true);
    });
  });

  it('waits for its AccessSession, before the API server is called', async () => {
    const stage = new Stage();
    const goOn = await stage.openAndWait('objectWaits');
    assert.deepEqual([stage.calls, stage.verdicts, await stage.received()], [[], [], '']);
    await goOn();
    stage.disconnect();
    await stage.processStays();
    assert.deepEqual([stage.calls.length, stage.objects], [1, ['created', 'ended']]);
  });

  it('is refused without its AccessSession, and completes its recording', async () => {
    const stage = new Stage('Required');
    stage.objectWaits = Promise.reject(new CodedError('GatewayFailed', 'the API server is away'));
    await stage.open();
    assert.match(await stage.received(), /^HTTP\/1\.1 503 .*the API server is away/s);
    assert.deepEqual([stage.calls, stage.sessions.count, stage.objects], [[], 0, ['ended']]);
    assert.deepEqual(stage.verdicts, ['recorded', 'denied GatewayFailed', 'recorded']);
  });

  it('keeps its AccessSession until the recording is complete, so that no other replica deletes the recording', async () => {
    const stage = new Stage('BestEffort');
    await stage.open();
    stage.pod.write(channelMessage(1, 'x'));
    await settle();
    stage.sinkWaits = new Promise(() => {});
    stage.disconnect();
    await settle();
    assert.deepEqual(stage.objects, ['created']);
    await stage.clock.advance(10_000);
    assert.deepEqual(stage.objects, ['created', 'ended']);
  });

  it('does not wait for a recording with best effort whose sink hangs, and says in the journal that it was lost', async () => {
    const stage = new Stage('BestEffort');
    stage.sinkWaits = new Promise(() => {});
    await stage.open();
    stage.pod.write(channelMessage(1, 'out'));
    assert.match(await stage.received(), /^HTTP\/1\.1 101 .*out/s);
    await stage.clock.advance(5_000);
    stage.pod.write(channelMessage(1, 'more'));
    assert.match(await stage.received(), /more/);
    assert.deepEqual(stage.verdicts, ['opened', 'unrecorded RecordingLost']);
  });

  it('is refused without an audit line, before the API server is called', async () => {
    const stage = new Stage();
    stage.journalFails = true;
    await stage.open();
    assert.match(await stage.received(), /^HTTP\/1\.1 503 /);
    assert.deepEqual([stage.calls, stage.sessions.count], [[], 0]);
  });

  it('aborts the call of the API server if the access is revoked before the answer', async () => {
    const stage = new Stage();
    const goOn = await stage.openAndWait('serverWaits');
    stage.cluster.change({ spec: { templateName: 'payments-exec', revoked: true } });
    stage.pod.write(channelMessage(1, 'secret'));
    await goOn();
    const received = await stage.received();
    assert.match(received, /^HTTP\/1\.1 403 .*access ended at .*: Revoked/s);
    assert.doesNotMatch(received, /secret/);
    assert.deepEqual([stage.verdicts, stage.sessions.count], [['opened', 'ended Revoked'], 0]);
  });

  const revoke = ({ cluster }: Stage): void =>
    cluster.change({ spec: { templateName: 'payments-exec', revoked: true } });
  const ends: readonly (readonly [cause: string, happen: (stage: Stage) => void, answer: RegExp, code: string])[] = [
    ['the access was revoked before', revoke, /^HTTP\/1\.1 403 .*access ended at .*: Revoked/s, 'Revoked'],
    ['this replica stops before', ({ sessions }) => void sessions.close(), / 503 .*Restarting; run the/s, 'Restarting'],
  ];
  for (const [cause, happen, answer, code] of ends) {
    it(`calls no API server, which would start the command, if ${cause}`, async () => {
      const stage = new Stage();
      const goOn = await stage.openAndWait('objectWaits');
      happen(stage);
      await goOn();
      assert.match(await stage.received(), answer);
      assert.deepEqual([stage.calls, stage.verdicts, stage.sessions.count], [[], ['opened', `ended ${code}`], 0]);
    });
  }

  it('is refused with the message of the API server, which may refuse it, too', async () => {
    const stage = new Stage();
    const status = JSON.stringify({ kind: 'Status', message: 'admission webhook denied the request: NoGrant' });
    const message = Object.assign(Readable.from([Buffer.from(status)]), { statusCode: 403 });
    stage.answer = { kind: 'response', message: message as unknown as IncomingMessage };
    await stage.open();
    assert.match(await stage.received(), /^HTTP\/1\.1 403 .*the API server refused the stream: admission webhook/s);
    assert.deepEqual([stage.verdicts, stage.sessions.count], [['opened', 'ended'], 0]);
  });

  it('is refused if the client or the API server chooses a protocol that the gateway does not read', async () => {
    const offers = new Stage();
    await offers.open('base64.channel.k8s.io');
    assert.match(await offers.received(), /^HTTP\/1\.1 400 .*subprotocol/s);
    const chooses = new Stage();
    chooses.chosen = 'base64.channel.k8s.io';
    await chooses.open();
    assert.match(await chooses.received(), /^HTTP\/1\.1 502 .*subprotocol/s);
    assert.deepEqual([offers.sessions.count, chooses.sessions.count, offers.calls], [0, 0, []]);
  });
});
