import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { AuditCall } from '../../sandbox/audit-log.ts';
import { chart, Helm, type Manifest } from '../../sandbox/chart/helm.ts';
import type { PlaneClient } from '../../sandbox/plane-client.ts';
import { sharedPlane } from './plane.ts';

/** A rule of a Role. */
export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

export const rulesOf = (manifest: Manifest): Rule[] => manifest['rules'] ?? [];
export const rolesIn = (manifests: readonly Manifest[]): Manifest[] =>
  manifests.filter(({ kind }) => /Role$/.test(kind));

export function named(manifests: readonly Manifest[], kind: string, name: string): Manifest {
  const found = manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name);
  assert.ok(found, `${kind} ${name}`);
  return found;
}

/** `verb group/resource`, for each permission. */
export const rightsIn = (rules: readonly Rule[]): string[] =>
  rules.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => `${verb} ${group}/${resource}`))),
  );

/** Roles of the server, without the roles for users and for helm test. */
export const serverRightsIn = (manifests: readonly Manifest[]): string[] => {
  const roles = rolesIn(manifests).filter(
    ({ metadata }) => !/-(requester|approver|viewer|test|test-\w+)$/.test(metadata.name),
  );
  return [...new Set(roles.flatMap((role) => rightsIn(rulesOf(role))))];
};

/** The permission that a call needs. */
export const rightFor = ({ verb, apiGroup, resource }: AuditCall): string => `${verb} ${apiGroup}/${resource}`;

/** The calls of a user that the API server denied, without the dry run that a policy must refuse. */
export const deniedCalls = ({ auditLog }: PlaneClient, user: string, since = 0): string[] =>
  auditLog
    .calls({ user, since })
    .filter(({ code, uri }) => code === 403 && !uri.includes('/configmaps/drawbridge-probe?'))
    .map(({ verb, uri }) => `${verb} ${uri}`);

/** Wildcards, and permissions to escalate. */
export function tooMuchIn(manifests: readonly Manifest[]): string[] {
  const words = rolesIn(manifests).flatMap((role) =>
    rulesOf(role).flatMap(({ apiGroups, resources, verbs }) => [...apiGroups, ...resources, ...verbs]),
  );
  return words.filter((word) => /\*|^(escalate|bind|impersonate)$/.test(word));
}

export const namesOf = (manifests: readonly Manifest[]): string[] =>
  manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort();

/** The manifests in a folder of the repository. */
export const shippedIn = (folder: string): Manifest[] =>
  readdirSync(join(chart, '../..', folder))
    .filter((file) => file.endsWith('.yaml'))
    .flatMap((file) => parseAllDocuments(readFileSync(join(chart, '../..', folder, file), 'utf8')))
    .map((document) => document.toJS() as Manifest);

/** Helm with the shared plane. */
export async function sharedHelm(): Promise<Helm> {
  const { adminKubeconfig: kubeconfig, binaries, directory } = await sharedPlane();
  return new Helm({ program: binaries.helm, home: directory, kubeconfig });
}

/** Values that the chart rejects, and the message. */
export type Refused = readonly [what: string, values: object, message: RegExp];

/** A test for each row. */
export function itRejects(rows: readonly Refused[], ...flags: readonly string[]): void {
  for (const [what, values, message] of rows) {
    it(`rejects ${what}`, async () => {
      const command = ['template', 'drawbridge', chart, ...flags, '--values', '-'];
      const { code, stderr } = await (await sharedHelm()).run(command, {
        input: JSON.stringify(values),
        reject: false,
      });
      assert.notEqual(code, 0);
      assert.match(stderr, message);
    });
  }
}
