import assert from 'node:assert/strict';
import { LifecycleStage } from './lifecycle-stage.ts';

describe('an end whose RoleBinding the API server does not delete', () => {
  for (const [what, config, minutes] of [
    ['at the granted time', undefined, 10],
    ['at a time that an edit of the template shortened', { maxDuration: '5m' }, 5],
  ] as const) {
    it(`is repeated with backoff, ${what}`, async () => {
      const stage = new LifecycleStage();
      await stage.start();
      await stage.granted();
      if (config) await stage.configured(config);
      let tries = 0;
      stage.cluster.fault = ({ verb, plural }) => {
        if (verb !== 'delete' || plural !== 'rolebindings') return;
        tries += 1;
        // Ends a hot loop.
        if (tries > 300) stage.cluster.fault = () => {};
        throw new Error('no');
      };
      await stage.pass(minutes * 60_000 + 20_000);
      assert.ok(tries >= 5 && tries <= 50, `${tries} tries in 20 s`);
      await stage.stop();
    });
  }
});
