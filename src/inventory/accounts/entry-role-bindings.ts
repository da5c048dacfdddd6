import { roleBindings, roles } from '../../api/resources.ts';
import { type Clock, sleep } from '../../kit/clock.ts';
import { CodedError } from '../../kit/errors.ts';
import { type Client, findObject } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import type { RbacSubject } from '../../rbac/roles.ts';
import { rightsOf } from '../../rbac/rule-cover.ts';
import type { EntryRef } from '../entry.ts';
import {
  accountQuestion,
  accountsAmong,
  type EntryRole,
  ensureOwned,
  entryRoleName,
  roleBindingFor,
  roleFor,
  rulesOf,
} from './entry-objects.ts';

/** Within this time, new RoleBindings must be in force. */
export const inForceMs = 5_000;
const pollMs = 15;

/**
 * Writes the Roles and RoleBindings of entries, and checks that they are in force. Callers
 * serialize the changes of an entry, whose components share RoleBindings. Rejects as the client
 * does.
 */
export class EntryRoleBindings {
  readonly #client: Client;
  readonly #clock: Clock;

  constructor(client: Client, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** Names of the accounts that have a role. */
  async holders(ref: EntryRef, role: EntryRole, signal: AbortSignal): Promise<Set<string>> {
    const name = { namespace: ref.namespace, name: entryRoleName(ref.uid, role) };
    const found = await findObject(this.#client, roleBindings, name, { signal });
    return new Set(accountsAmong(found?.['subjects'], ref).map((subject) => subject.name));
  }

  /**
   * Creates or corrects Role and RoleBinding, adds `subjects`, and drops any that are not accounts
   * of the entry. Also rejects with `NameTaken`, as `ensureOwned` does.
   */
  async bind(
    ref: EntryRef,
    role: EntryRole,
    suppliedSecret: string,
    subjects: readonly RbacSubject[],
    signal: AbortSignal,
  ): Promise<void> {
    const client = this.#client;
    await ensureOwned(client, roles, roleFor(ref, role, suppliedSecret), ref.uid, signal, {
      name: 'rules',
      desired: () => rulesOf(ref, role, suppliedSecret),
    });
    await ensureOwned(client, roleBindings, roleBindingFor(ref, role, subjects), ref.uid, signal, {
      name: 'subjects',
      desired: (current) => {
        const existing = accountsAmong(current, ref);
        return [...existing, ...subjects.filter(({ name }) => !existing.some((subject) => subject.name === name))];
      },
    });
  }

  /** Does nothing without the RoleBinding. Rejects with Conflict if another client changes it. */
  async unbind(ref: EntryRef, role: EntryRole, subject: RbacSubject, signal: AbortSignal): Promise<void> {
    const client = this.#client;
    const name = { namespace: ref.namespace, name: entryRoleName(ref.uid, role) };
    try {
      const found = await client.get(roleBindings, name, { signal });
      const existing = accountsAmong(found['subjects'], ref);
      const subjects = existing.filter(({ name }) => name !== subject.name);
      if (subjects.length === existing.length) return;
      const { resourceVersion } = found.metadata;
      await client.mergePatch(roleBindings, name, { metadata: { resourceVersion }, subjects }, { signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /** Also rejects with CodedError `GrantNotInForce`, after five seconds. */
  async waitUntilInForce(
    ref: EntryRef,
    component: string,
    wanted: readonly EntryRole[],
    suppliedSecret: string,
    signal: AbortSignal,
  ): Promise<void> {
    const clock = this.#clock;
    const start = clock.monotonic();
    while (!(await this.areInForce(ref, component, wanted, suppliedSecret, signal))) {
      if (clock.monotonic() - start > inForceMs) {
        const entry = `${ref.namespace}/${ref.name}`;
        const message = `the permissions of component ${component} on entry ${entry} are not in force ${inForceMs / 1000} s after their RoleBindings were written; check that RBAC authorization is enabled`;
        throw new CodedError('GrantNotInForce', message);
      }
      await sleep(clock, pollMs, signal);
    }
  }

  /** Checks the last permission of each role: a Role takes effect as a whole. */
  async areInForce(
    ref: EntryRef,
    component: string,
    wanted: readonly EntryRole[],
    suppliedSecret: string,
    signal: AbortSignal,
  ): Promise<boolean> {
    const client = this.#client;
    const rights = wanted.flatMap((role) => rightsOf(rulesOf(ref, role, suppliedSecret)).slice(-1));
    const answers = await Promise.all(
      rights.map((right) => client.isAllowed(accountQuestion(ref, component, right), { signal })),
    );
    return answers.every((allowed) => allowed);
  }
}
