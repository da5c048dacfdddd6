import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { bindConditions } from '../../../../src/api/binding/names.ts';
import { addedReasons, kubeBindReasons, unusedReasons } from '../../../../src/api/binding/reasons.ts';

/** The reasons of kube-bind's konnector v0.8.1, by kind and type of the condition. */
const theirs: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  APIServiceBinding: {
    SecretValid: ['KubeconfigSecretNotFound', 'KubeconfigSecretInvalid'],
    InformersSynced: ['InformerSyncTimeout'],
    Heartbeating: ['ClusterBindingUpdateFailed'],
    Connected: [
      'APIServiceExportNotFound',
      'APIServiceExportFailed',
      'BoundSchemaFetchFailed',
      'CustomResourceDefinitionCreateFailed',
      'CustomResourceDefinitionUpdateFailed',
      'ForeignCustomResourceDefinition',
    ],
    SchemaInSync: [],
    Ready: [],
  },
  APIServiceBindingBundle: {
    SecretValid: ['KubeconfigSecretNotFound', 'KubeconfigSecretInvalid'],
    Synced: ['ProviderClientError', 'ListExportsFailed', 'ListBindingsFailed', 'SyncErrors'],
  },
  ClusterBinding: { SecretValid: ['ProviderSecretNotFound', 'ProviderSecretInvalid'], ValidVersion: ['ParseError'] },
  APIServiceExport: {
    Connected: ['APIServiceBindingNotFound', 'BoundSchemasNotValid'],
    ConsumerInSync: ['NA', 'Unknown'],
  },
};

const kinds = Object.values(theirs);
const sorted = (list: Iterable<string>): string[] => [...new Set(list)].sort();

function sources(folder: URL): string {
  return readdirSync(folder, { withFileTypes: true })
    .map((entry) => {
      const path = new URL(entry.isDirectory() ? `${entry.name}/` : entry.name, folder);
      return entry.isDirectory() ? sources(path) : readFileSync(path, 'utf8');
    })
    .join('\n');
}

describe("types and reasons of conditions, compared with kube-bind's", () => {
  const code = sources(new URL('../../../../src/binding/', import.meta.url));
  const isUsed = (reason: string): boolean => code.includes(`'${reason}'`);

  it('include every type', () => {
    assert.deepEqual(sorted(Object.values(bindConditions)), sorted(kinds.flatMap((types) => Object.keys(types))));
  });

  it('include every reason except those that cannot occur here', () => {
    assert.deepEqual(
      sorted([...kubeBindReasons, ...unusedReasons]),
      sorted(kinds.flatMap((types) => Object.values(types).flat())),
    );
    assert.deepEqual(
      [...kubeBindReasons].filter((reason) => !isUsed(reason)),
      [],
    );
    assert.deepEqual([...unusedReasons].filter(isUsed), []);
  });

  it('add reasons with other names, and none that is unused', () => {
    const known: readonly string[] = [...kubeBindReasons, ...unusedReasons];
    assert.deepEqual(
      [...addedReasons].filter((reason) => known.includes(reason)),
      [],
    );
    assert.deepEqual(
      [...addedReasons].filter((reason) => !isUsed(reason)),
      [],
    );
  });
});
