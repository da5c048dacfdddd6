import assert from 'node:assert/strict';
import type { ServingCertificate } from '../../../src/admission/certificate.ts';
import { readConfig } from '../../../src/config.ts';
import { Manager } from '../../../src/engine/manager.ts';
import { clock } from '../../../src/features/feature.ts';
import { openServing, openServingFiles, sharedAmongServers } from '../../../src/features/serving.ts';
import type { KeyPair } from '../../../src/kit/key-pair.ts';
import { staticCredentials } from '../../../src/kube/credentials.ts';
import { openCluster } from '../../../src/kube/open-cluster.ts';
import { noLog } from '../../../src/observe/log.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';

const pair = (startsAtMs: number): KeyPair => ({
  cert: Buffer.from(''),
  key: Buffer.from(''),
  startsAtMs,
  expiresAtMs: startsAtMs + 1,
});

describe('the certificate of several servers', () => {
  it('passes every new pair to each server until it closes, and is started once', () => {
    const listeners: ((pair: KeyPair) => void)[] = [];
    const certificate: ServingCertificate = {
      current: pair(0),
      start: (listener) => void listeners.push(listener),
      close: () => assert.fail('one server does not close it for the others'),
    };
    const share = sharedAmongServers(certificate);
    const [first, second] = [share(), share()];
    const seen: string[] = [];
    first.start(({ startsAtMs }) => void seen.push(`first ${startsAtMs}`));
    second.start(({ startsAtMs }) => void seen.push(`second ${startsAtMs}`));
    assert.equal(second.current, certificate.current);
    assert.equal(listeners.length, 1);
    listeners[0]?.(pair(1));
    first.close();
    listeners[0]?.(pair(2));
    assert.deepEqual(seen, ['second 0', 'first 1', 'second 1', 'second 2']);
  });

  it('passes a pair that was adopted while the second server started to that server', () => {
    let notify: (pair: KeyPair) => void = () => {};
    const certificate = { current: pair(0), start: (listener: typeof notify) => (notify = listener), close: () => {} };
    const share = sharedAmongServers(certificate);
    const [first, second] = [share(), share()];
    first.start(() => {});
    let served = second.current;
    notify(pair(1));
    certificate.current = pair(1);
    second.start((next) => (served = next));
    assert.equal(served.startsAtMs, 1);
  });
});

describe('the parts that features with HTTPS share', () => {
  for (const [feature, calledBy] of [
    ['access', 'mutatingwebhookconfigurations, validatingwebhookconfigurations'],
    ['gateway', 'apiservices'],
  ] as const) {
    it(`of ${feature} are not ready until the server has listed the Secret of its certificate, and ${calledBy}`, () =>
      listsFirst(feature, calledBy));
  }

  async function listsFirst(feature: string, calledBy: string): Promise<void> {
    const config = readConfig([`--features=${feature}`, '--certificates=own'], {});
    const credentials = staticCredentials({ server: 'https://127.0.0.1:1' });
    const cluster = openCluster(credentials, { clock, log: noLog });
    const manager = new Manager({ clock, log: noLog });
    const [stop, metrics] = [new AbortController(), createMetrics()];
    const files = openServingFiles(config, noLog, metrics);
    const { readiness, close } = openServing(
      {
        config,
        credentials,
        log: noLog,
        manager,
        cluster,
        metrics,
        watchRefusals: { inc: () => {} },
        signal: stop.signal,
      },
      files,
    );
    try {
      assert.equal(readiness['certificate-stores']?.(), `not listed yet: secrets, ${calledBy}`);
    } finally {
      stop.abort();
      for (const part of Object.values(close)) await part();
      await cluster.close();
    }
  }
});
