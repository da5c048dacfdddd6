import assert from 'node:assert/strict';
import { apiServices, secrets } from '../../../src/api/resources.ts';
import { newSignedPair } from '../../../src/certificates/material.ts';
import { loadMs, propagationMs } from '../../../src/certificates/rotation.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import { apiService, CertificateStage, days, pems } from './stage.ts';

describe('the certificate of an APIService', () => {
  let stage: CertificateStage;
  const settle = (ms = 100): Promise<void> => stage.clock.advance(ms);
  const spec = (): unknown => stage.cluster.find(apiServices, { name: apiService })?.['spec'];

  beforeEach(() => {
    stage = new CertificateStage({ calls: 'api-service' });
  });
  afterEach(() => stage.close());

  it('is trusted by it, and no other field changes', async () => {
    const before = spec() as object;
    stage.replica({ leads: true });
    stage.replica();
    await settle();
    assert.deepEqual(stage.untrusted(), []);
    assert.deepEqual(stage.problems(), [undefined, undefined]);
    const caBundle = Buffer.from(stage.data()['ca.crt'] ?? '').toString('base64');
    assert.deepEqual(spec(), { ...before, caBundle });
    assert.deepEqual(stage.writes(), ['create secrets', 'patch apiservices']);
  });

  it('keeps every replica from being ready until it is trusted', async () => {
    stage.cluster.fault = ({ plural }) => {
      if (plural === apiServices.plural) throw new ApiError(403, 'Forbidden', 'may not patch');
    };
    stage.replica({ leads: true });
    stage.replica();
    await settle();
    const problem = `caBundle does not contain the authority of the serving certificate yet: ${apiService}`;
    assert.deepEqual(stage.problems(), [problem, problem]);
    stage.cluster.fault = () => {};
    await settle(60_000);
    assert.deepEqual(stage.problems(), [undefined, undefined]);
  });

  it('lets the replicas be ready without the APIService, and is trusted once that is created', async () => {
    stage.cluster.drop(apiServices, { name: apiService });
    const { certificate } = stage.replica({ leads: true });
    await settle();
    assert.equal(certificate.problem(), undefined);
    stage.putApiService();
    assert.deepEqual(stage.untrusted(), [0]);
    await settle();
    assert.deepEqual(stage.untrusted(), []);
  });

  it('has a successor that is trusted for ten seconds before it is served', async () => {
    stage.replica({ leads: true });
    await settle();
    const [before] = stage.serials();
    stage.cluster.drop(secrets, { namespace: 'ns', name: 'pair' });
    await settle(propagationMs - 1000);
    assert.deepEqual([stage.serials()[0], pems(stage.bundles()[0] ?? '').length], [before, 2]);
    await settle(2000);
    assert.notEqual(stage.serials()[0], before);
    assert.deepEqual(stage.untrusted(), []);
  });

  it('is written again into an emptied caBundle, and costs no write while nothing changes', async () => {
    stage.replica({ leads: true });
    await settle(loadMs);
    const before = stage.writes().length;
    await stage.clock.advance(7 * days);
    assert.deepEqual(stage.writes().slice(before), []);
    stage.putApiService();
    await settle();
    assert.deepEqual(stage.untrusted(), []);
    assert.deepEqual(stage.writes().slice(before), ['patch apiservices']);
  });

  it('leaves replicas with a certificate from files trusted for five minutes', async () => {
    const { authority } = newSignedPair(['svc.ns.svc'], 0);
    stage.putApiService(Buffer.from(authority).toString('base64'));
    const isEarlierTrusted = (): boolean => stage.bundles().every((bundle) => bundle.includes(authority.trim()));
    stage.replica({ leads: true });
    await settle(loadMs - 1000);
    assert.deepEqual(stage.untrusted(), []);
    assert.ok(isEarlierTrusted());
    await settle(10_000);
    assert.ok(!isEarlierTrusted());
  });

  it('leaves the paths of webhooks of the same process as they are', async () => {
    const both = new CertificateStage({ calls: 'both' });
    both.replica({ leads: true });
    await both.clock.advance(100);
    assert.deepEqual(both.untrusted(), []);
    assert.deepEqual(both.configuredPaths(), ['/one', '/two']);
    await both.close();
  });
});
