import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import type { Journal } from '../../../src/audit/journal.ts';
import type { AuditRecord } from '../../../src/audit/record.ts';
import { LiveSession, LiveViews } from '../../../src/gateway/live-views.ts';
import { SessionCast } from '../../../src/gateway/recording/session-cast.ts';
import { SessionAudit, type ViewCall } from '../../../src/gateway/session-audit.ts';
import { type Holder, ViewHandler } from '../../../src/gateway/view-handler.ts';
import { silentLog } from '../../../src/kube/log.ts';
import type { Log } from '../../../src/observe/log.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const warnings: unknown[] = [];
const log = { ...silentLog, warn: (_: string, fields: unknown) => warnings.push(fields) } as unknown as Log;
const name = { namespace: 'payments', session: '0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10' };
const record = {
  event: 'session',
  who: { user: 'alice' },
  what: { operation: 'CONNECT', apiVersion: 'v1', kind: 'Pod' },
  request: 'debug',
  pod: 'web-0',
} as const;
const caller = { username: 'carol', uid: '', groups: ['auditors'] };

describe('a view of a session or a recording', () => {
  let server: Server;
  let viewHandler: ViewHandler;
  let views: LiveViews;
  let lines: AuditRecord[];
  let journalFails: boolean;
  let stored: () => Readable | undefined;
  let kind: ViewCall['kind'];
  let holder: Holder | undefined;
  let remote: () => Promise<IncomingMessage>;

  beforeEach(async () => {
    warnings.length = 0;
    [lines, journalFails, stored, kind, holder] = [[], false, () => undefined, 'session', undefined];
    views = new LiveViews(new SimulatedClock());
    const append = async (line: AuditRecord): Promise<void> => {
      if (journalFails) throw new Error('no space');
      lines.push(line);
    };
    const audit = new SessionAudit({ append } as Journal, log);
    viewHandler = new ViewHandler({
      views,
      sink: { read: async () => stored() },
      holderOf: () => holder,
      peers: { open: () => remote() },
      audit,
      log,
    });
    server = createServer((_, response) => void viewHandler.answer({ caller, kind, name }, response).catch(() => {}));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  const answered = async () => {
    const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    return { status: answer.status, text: await answer.text().catch(() => 'broken off') };
  };
  const written = (): unknown[] => lines.map(({ verdict, what, code }) => [verdict, what.kind, code]);
  const begin = (cast: SessionCast | undefined = new SessionCast(new SimulatedClock(), false)) =>
    views.begin(new LiveSession(name, cast, record));

  it('writes whose Pod it shows before it shows it', async () => {
    const end = begin();
    const shown = answered();
    while (lines.length === 0) await new Promise((resolve) => setImmediate(resolve));
    end('the session ended');
    assert.equal((await shown).status, 200);
    assert.deepEqual(
      [lines[0]?.verdict, lines[0]?.who.user, lines[0]?.request, lines[0]?.pod],
      ['viewed', 'carol', 'debug', 'web-0'],
    );
  });

  for (const which of ['session', 'recording'] as const) {
    it(`shows no ${which} if the line cannot be written`, async () => {
      begin();
      const content = Readable.from([Buffer.from('secret')]);
      [kind, journalFails, stored] = [which, true, () => content];
      const { status, text } = await answered();
      assert.equal(status, 503);
      assert.doesNotMatch(text, /secret|version/);
      if (which === 'recording') assert.equal(content.destroyed, true);
    });
  }

  it('is refused for a session without a terminal, with a line', async () => {
    views.begin(new LiveSession(name, undefined, record));
    assert.match((await answered()).text, /it has no output to watch; only sessions of exec and attach can be watched/);
    assert.deepEqual(written(), [['denied', 'Session', 'NotServed']]);
  });

  it('is refused for a session that is not open, and for a recording that is not there', async () => {
    assert.match((await answered()).text, /is not open in namespace payments; .*sessions play/);
    kind = 'recording';
    assert.match((await answered()).text, /no recording of session/);
    assert.deepEqual(written(), [
      ['denied', 'Session', 'SessionNotOpen'],
      ['denied', 'Recording', 'NoRecording'],
    ]);
  });

  it('says nothing about the storage if that fails, and breaks off if it fails later', async () => {
    kind = 'recording';
    stored = () => {
      throw new Error('EACCES /var/recordings');
    };
    const { status, text } = await answered();
    assert.equal(status, 503);
    assert.doesNotMatch(text, /var/);
    stored = () =>
      Readable.from(
        (function* () {
          yield Buffer.from('first');
          throw new Error('EIO');
        })(),
      );
    assert.equal((await answered()).text, 'broken off');
  });

  describe('that another replica holds', () => {
    const answer = (statusCode: number, text = ''): IncomingMessage =>
      Object.assign(Readable.from(text === '' ? [] : [Buffer.from(text)]), {
        statusCode,
      }) as unknown as IncomingMessage;
    beforeEach(() => {
      holder = { replica: 'b', address: '10.0.0.2:9445', record: { pod: 'web-0', request: 'debug' } };
    });

    it('passes the view on, after a line', async () => {
      remote = async () => answer(200, 'the view');
      assert.deepEqual(await answered(), { status: 200, text: 'the view' });
      assert.deepEqual([lines[0]?.verdict, lines[0]?.pod], ['viewed', 'web-0']);
    });

    it('passes nothing on if the line cannot be written', async () => {
      const view = answer(200, 'secret');
      [remote, journalFails] = [async () => view, true];
      assert.equal((await answered()).status, 503);
    });

    for (const [status, code] of [
      [404, 'SessionNotOpen'],
      [429, 'TooManySessions'],
      [400, 'NotServed'],
      [401, 'ReplicaUnreachable'],
      [500, 'ReplicaUnreachable'],
    ] as const) {
      it(`is refused with ${code} if the replica answers ${status}, whatever its text`, async () => {
        remote = async () => answer(status, 'anything');
        const { text } = await answered();
        assert.doesNotMatch(text, /anything/);
        assert.deepEqual(written(), [['denied', 'Session', code]]);
      });
    }

    it('is logged if the replica answers with neither a view nor a known refusal', async () => {
      remote = async () => answer(401);
      await answered();
      remote = async () => answer(404);
      await answered();
      assert.deepEqual(warnings, [{ ...name, replica: 'b', status: 401 }]);
    });

    it('is refused if the replica cannot be reached, or has no address', async () => {
      remote = () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.2:9445'));
      const { status, text } = await answered();
      assert.equal(status, 503);
      assert.match(text, /is open in replica b of the gateway, which this replica cannot reach/);
      assert.doesNotMatch(text, /10\.0\.0\.2/);
      holder = { replica: 'b', address: undefined, record: {} };
      assert.equal((await answered()).status, 503);
    });
  });

  it('frees its place at its end', async () => {
    kind = 'recording';
    stored = () => Readable.from([Buffer.from('x')]);
    for (let i = 0; i < 70; i++) assert.equal((await answered()).status, 200);
  });
});
