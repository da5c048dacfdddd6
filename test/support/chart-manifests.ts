import assert from 'node:assert/strict';
import type { AuditCall } from '../../sandbox/audit-log.ts';
import type { Manifest } from '../../sandbox/chart/helm.ts';

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

/** Roles of the server, without the roles for users. */
export const serverRightsIn = (manifests: readonly Manifest[]): string[] => {
  const roles = rolesIn(manifests).filter(({ metadata }) => !/-(requester|approver|viewer)$/.test(metadata.name));
  return [...new Set(roles.flatMap((role) => rightsIn(rulesOf(role))))];
};

/** The permission that a call needs. */
export const rightFor = ({ verb, apiGroup, resource }: AuditCall): string => `${verb} ${apiGroup}/${resource}`;

/** Wildcards, and permissions to escalate. */
export function tooMuchIn(manifests: readonly Manifest[]): string[] {
  const words = rolesIn(manifests).flatMap((role) =>
    rulesOf(role).flatMap(({ apiGroups, resources, verbs }) => [...apiGroups, ...resources, ...verbs]),
  );
  return words.filter((word) => /\*|^(escalate|bind|impersonate)$/.test(word));
}
