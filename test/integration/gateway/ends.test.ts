import assert from 'node:assert/strict';
import { GatewayStage } from '../../support/gateway-stage.ts';

describe('the end of a stream through the gateway', () => {
  let stage: GatewayStage;

  before(async function () {
    this.timeout(180_000);
    stage = await GatewayStage.open();
  });
  after(() => stage?.close());

  it('comes at the deadline, with a line on the terminal, an error, and exit code 1', async () => {
    const grant = await stage.grant({ lastsMs: 4_000 });
    const terminal = stage.terminal(stage.alice, [...grant.via, 'exec', '-ti', 'payments', '--', 'sh']);
    await terminal.shows(/\$|#/);
    assert.equal(await terminal.exit(), 1);
    assert.match(terminal.text, /\[drawbridge\] access ended at \d\d:\d\d UTC: Expired; create a new request/);
    assert.match(terminal.text, /error: access ended at \d\d:\d\d UTC: Expired; create a new request/);
    const [ended] = await stage.gateway.audit(
      ({ verdict, request }) => verdict === 'ended' && request === grant.request,
    );
    assert.equal(ended?.['code'], 'Expired');
  });

  it('comes at once when the request is revoked, on stderr without a terminal', async () => {
    const grant = await stage.grant();
    const terminal = stage.terminal(stage.alice, [
      ...grant.via,
      'exec',
      'payments',
      '--',
      'sh',
      '-c',
      'echo on; sleep 60',
    ]);
    await terminal.shows(/on/);
    await stage.revoke(grant);
    assert.equal(await terminal.exit(), 1);
    assert.match(terminal.text, /\[drawbridge\] access ended at \d\d:\d\d UTC: Revoked/);
  });

  it('is told in a log that is followed, which then does not end as if it were complete', async () => {
    const grant = await stage.grant({ lastsMs: 5_000 });
    const log = stage.terminal(stage.alice, [...grant.via, 'logs', '-f', 'payments']);
    assert.equal(await log.exit(), 1, log.text);
    assert.match(log.text, /\[drawbridge\] access ended at \d\d:\d\d UTC: Expired/);
  });
});
