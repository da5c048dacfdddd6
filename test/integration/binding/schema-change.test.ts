import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import type { KubeObject } from '../../../src/api/object.ts';
import { customResourceDefinitions } from '../../../src/api/resources.ts';
import { own } from '../../../src/kit/json-value.ts';
import { BindingStage } from '../../support/binding/stage.ts';

type Properties = Record<string, object>;

interface CrdSpec {
  readonly versions: {
    readonly name: string;
    readonly schema: {
      readonly openAPIV3Schema: { readonly properties: Record<'spec' | 'status', { readonly properties: Properties }> };
    };
  }[];
}

describe('a schema that changes', () => {
  let stage: BindingStage;
  const kind = () => stage.kinds.kettles;
  const name = (kettle: string) => ({ namespace: stage.side.namespace, name: kettle });
  const text = (value: unknown) => JSON.stringify(value);
  const crdHere = () => stage.side.consumer.get(customResourceDefinitions, { name: kind().crd.metadata.name });
  const whenCrd = (what: string, matches: (crd: KubeObject) => boolean): Promise<KubeObject> => {
    const check = async (): Promise<KubeObject | undefined> => {
      const crd = await crdHere();
      return crd && matches(crd) ? crd : undefined;
    };
    return until(what, check, { timeoutMs: 30_000 });
  };
  const added: Record<'spec' | 'status', string[]> = { spec: [], status: [] };
  /** Adds a field to the provider's CRD and to the BoundSchema, like the backend. */
  const addField = async (to: 'spec' | 'status', field: string): Promise<void> => {
    added[to].push(field);
    const spec = structuredClone(kind().crd.spec) as CrdSpec;
    for (const { schema } of spec.versions) {
      for (const part of ['spec', 'status'] as const) {
        for (const name of added[part]) schema.openAPIV3Schema.properties[part].properties[name] = { type: 'string' };
      }
    }
    await stage.provider.install({ ...kind().crd, spec });
    const versions = spec.versions.map((version) => ({ ...version, schema: version.schema.openAPIV3Schema }));
    await stage.side.backend.changeSchema(kind(), () => ({ versions }));
  };

  before(async function () {
    this.timeout(180_000);
    stage = await BindingStage.open();
    await stage.side.consumer.start();
    await stage.bind('kitchen', [kind()]);
    await stage.create(kind(), name('before'));
    await stage.whenSynced(kind(), name('before'));
  });
  after(async () => stage.close());

  it('reaches the consumer, and objects with the new field sync', async () => {
    await addField('spec', 'lid');
    await whenCrd('the new field', (crd) => text(crd.spec).includes('"lid"'));
    await stage.side.consumer.whenCondition('kitchen', 'SchemaInSync');
    // The API server takes a moment to serve it.
    const use = async (): Promise<boolean> => {
      const patch = { spec: { lid: 'on' } };
      const patched = await stage.side.consumer.client.mergePatch(kind().inConsumer, name('before'), patch);
      return own(patched.spec, 'lid') === 'on';
    };
    await until('the field to be kept', use, { timeoutMs: 30_000 });
    await stage.whenCopy(kind(), name('before'), ({ spec }) => own(spec, 'lid') === 'on');
  });

  it('lets a status with the new field sync at once', async () => {
    await addField('status', 'colour');
    const report = async (): Promise<boolean> => {
      await stage.report(kind(), name('before'), { colour: 'red' });
      const copy = await stage.copy(kind(), name('before'));
      return own(copy?.status, 'colour') === 'red';
    };
    await until('the field to be kept by the provider', report, { timeoutMs: 30_000, everyMs: 5 });
    await stage.whenObject(kind(), name('before'), ({ status }) => own(status, 'colour') === 'red');
  });

  it('caused no denied call', () => {
    assert.deepEqual(stage.side.consumer.refusals(), []);
    assert.deepEqual(stage.providerRefusals(), []);
  });
});
