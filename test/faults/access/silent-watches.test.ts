import assert from 'node:assert/strict';
import type { ScriptedRequest } from '../../../sandbox/http-script.ts';
import { podRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { orphansIn } from '../../support/orphans.ts';
import { sharedPlane } from '../../support/plane.ts';

/** An API server sends a bookmark each minute. */
const noticedWithinMs = 90_000;

describe('watches that stop delivering without closing', () => {
  let stage: AccessStage;
  const open = new Set<ScriptedRequest>();
  const silent = new Set<ScriptedRequest>();

  before(async function () {
    this.timeout(180_000);
    const plane = await sharedPlane();
    const proxy = await plane.proxy({
      onRequest: (call) => {
        if (call.watch) open.add(call);
        return 'pass';
      },
      onWatchLine: (line, call) => (silent.has(call) ? [] : [line]),
    });
    stage = await AccessStage.open({ apiserver: proxy.server });
  });

  after(() => stage?.close());

  it(`are detected within ${noticedWithinMs / 1000} s, and the missed changes are handled`, async function () {
    this.timeout(200_000);
    const given = await stage.createReady(stage.alice, podRequest('given-back'));
    for (const watch of open) silent.add(watch);
    const silentMs = Date.now();
    const asked = await stage.createOk(stage.alice, podRequest('asked'));
    await stage.alice.call('DELETE', stage.urlOf(given.kind, given.metadata.name));
    const goneMs = await stage.gone(given, 120_000);
    console.log(`      made up for ${goneMs - silentMs} ms after the last line`);
    assert.ok(goneMs - silentMs <= noticedWithinMs, `${goneMs - silentMs} ms`);
    await stage.ready(asked);
    await stage.kubectl('delete', 'podaccessrequests', '--all', '--timeout=60s');
    assert.deepEqual(await orphansIn(stage.plane, stage.namespace), []);
  });
});
