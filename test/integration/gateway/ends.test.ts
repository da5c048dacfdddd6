import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { portOf } from '../../../sandbox/ports.ts';
import { GatewayStage } from '../../support/gateway-stage.ts';
import { shown } from '../../support/shown-output.ts';
import { sideBySide } from '../../support/side-by-side.ts';

/** How long a grant lasts that must not end before a stream of it is open, even on a busy machine. */
const opensWithinMs = 10_000;

describe('the end of a stream through the gateway', () => {
  let stage: GatewayStage;

  before(async function () {
    this.timeout(180_000);
    stage = await GatewayStage.open();
  });
  after(() => stage?.close());

  sideBySide([
    [
      'comes at the deadline, with a line on the terminal, an error, and exit code 1',
      async () => {
        const grant = await stage.grant({ lastsMs: opensWithinMs });
        const terminal = stage.terminal(stage.alice, [...grant.via, 'exec', '-ti', 'payments', '--', 'sh']);
        await terminal.shows(/\$|#/);
        assert.equal(await terminal.exit(), 1);
        assert.match(terminal.text, shown('tasks/open-sessions-through-the-gateway.md', 'access ended at'));
        assert.match(terminal.text, /error: access ended at \d\d:\d\d UTC: Expired; create a new request/);
        assert.equal((await stage.ended(grant))['code'], 'Expired');
      },
    ],
    [
      'is told in a log that is followed, which then does not end as if it were complete',
      async () => {
        const grant = await stage.grant({ lastsMs: opensWithinMs });
        const log = stage.terminal(stage.alice, [...grant.via, 'logs', '-f', 'payments']);
        assert.equal(await log.exit(), 1, log.text);
        assert.match(log.text, /\[drawbridge\] access ended at \d\d:\d\d UTC: Expired/);
      },
    ],
    [
      'closes a forwarded port, of which kubectl can show no reason, with exit code 1',
      async () => {
        const grant = await stage.grant({ lastsMs: opensWithinMs });
        const target = createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1');
        await once(target, 'listening');
        const forward = stage.terminal(stage.alice, [
          ...grant.via,
          'port-forward',
          'pod/payments',
          `:${portOf(target)}`,
        ]);
        const shown = await forward.shows(/Forwarding from 127\.0\.0\.1:(\d+)/);
        const local = connect(Number(/127\.0\.0\.1:(\d+)/.exec(shown)?.[1]), '127.0.0.1');
        local.on('error', () => {});
        local.write('hello');
        const [echo] = (await once(local, 'data')) as [Buffer];
        assert.equal(String(echo), 'hello');
        assert.equal(await forward.exit(), 1);
        assert.ok(Date.now() >= grant.endMs);
        assert.match(forward.text, /error: lost connection to pod/);
        target.close();
      },
    ],
    [
      'comes after the idle time, and the grant then opens another session',
      async () => {
        const grant = await stage.grant({ over: { session: { via: 'Gateway', idleAfter: '5s' } } });
        const args = [...grant.via, 'exec', '-ti', 'payments', '--', 'sh'];
        const idle = stage.terminal(stage.alice, args);
        assert.equal(await idle.exit(), 1);
        assert.match(idle.text, /\[drawbridge\] the session ended at \d\d:\d\d UTC: Idle; run the command again/);
        const next = stage.terminal(stage.alice, args);
        await next.shows(/\$|#/);
        next.kill();
      },
    ],
  ]);
});
