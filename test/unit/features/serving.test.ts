import assert from 'node:assert/strict';
import type { ServingCertificate } from '../../../src/admission/certificate.ts';
import { sharedAmongServers } from '../../../src/features/serving.ts';
import type { KeyPair } from '../../../src/kit/key-pair.ts';

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
    assert.deepEqual(seen, ['first 1', 'second 1', 'second 2']);
  });
});
