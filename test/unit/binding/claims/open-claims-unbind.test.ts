import assert from 'node:assert/strict';
import { apiServiceBindings } from '../../../../src/api/binding/names.ts';
import { customResourceDefinitions, secrets } from '../../../../src/api/resources.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { kettles } from '../../../support/binding/memory-stage.ts';
import { bindingManifest } from '../../../support/binding/objects.ts';
import { ClaimsStage, kettle, secretIn, secretsOf } from './claims-stage.ts';

describe('claims', () => {
  let stage: ClaimsStage;
  beforeEach(() => {
    stage = new ClaimsStage();
  });
  afterEach(() => stage.close());

  describe('when their binding is deleted', () => {
    const crd = { name: 'kettles.kitchen.example' };
    const bind = (name: string, fields: Readonly<Record<string, unknown>> = {}) => {
      const { metadata, ...binding } = bindingManifest(fields);
      stage.consumer.put(apiServiceBindings, { ...binding, metadata: { ...metadata, name, uid: `uid-of-${name}` } });
    };
    /** One object of each side is shared. */
    const share = async (): Promise<void> => {
      stage.consumer.put(kettles, kettle([]));
      stage.consumer.put(secrets, secretIn('team-a', 'creds'));
      stage.provider.put(secrets, secretIn('kb-acme-team-a', 'theirs'));
      await stage.open([secretsOf('kettle')]);
      assert.ok(stage.up('creds') && stage.down('theirs'));
      await stage.close();
    };
    const drain = () => stage.open([secretsOf('kettle')], {}, 'drain');
    const shared = (): string[] =>
      ['creds', 'theirs'].flatMap((name) => [
        ...(stage.down(name) ? [`${name} here`] : []),
        ...(stage.up(name) ? [`${name} there`] : []),
      ]);
    const all = ['creds here', 'creds there', 'theirs here', 'theirs there'];

    it('end with the bound objects: copies are deleted, originals stay', async () => {
      await share();
      await drain();
      assert.deepEqual([shared(), stage.claims.remaining()], [all, 0]);
      await stage.close();
      stage.consumer.drop(customResourceDefinitions, crd);
      const told = stage.told.length;
      await drain();
      await stage.settle(1000);
      assert.deepEqual([shared(), stage.claims.remaining()], [['creds here', 'theirs there'], 0]);
      assert.ok(stage.told.length > told, 'the binding is told');
    });

    it('continue for another binding that uses the same provider with another Secret', async () => {
      await share();
      stage.consumer.drop(customResourceDefinitions, crd);
      const kubeconfigSecretRef = { namespace: 'kube-bind', name: 'kubeconfig-pots', key: 'kubeconfig' };
      bind('pots', { spec: { kubeconfigSecretRef }, status: { permissionClaims: [secretsOf('pot')] } });
      await drain();
      await stage.settle(1000);
      assert.deepEqual([shared(), stage.claims.remaining()], [all, 0]);
      await stage.close();
      stage.leadHere = (name) => name !== 'pots';
      await drain();
      await stage.settle(1000);
      assert.deepEqual(shared(), ['creds here', 'theirs there']);
    });

    it('delay the unbinding for at most a minute', async () => {
      await share();
      stage.consumer.drop(customResourceDefinitions, crd);
      stage.provider.fault = ({ verb }) => {
        if (verb === 'delete') throw new ApiError(403, 'Forbidden', 'secrets is forbidden');
      };
      await drain();
      assert.equal(stage.claims.remaining(), 1);
      await stage.settle(59_000);
      assert.equal(stage.claims.remaining(), 1);
      await stage.settle(2000);
      assert.deepEqual([stage.claims.remaining(), shared()], [0, ['creds here', 'creds there', 'theirs there']]);
    });
  });
});
