import { type KubeObject, keyOf } from '../api/object.ts';
import type { AccessQuestion, Client } from '../kube/client.ts';
import { isNotFound } from '../kube/errors.ts';
import type { Store } from '../kube/store.ts';
import type { GrantTally } from './life/grant-tally.ts';
import type { Account } from './policy/limits.ts';
import type { Caller, TemplateState } from './policy/request-policy.ts';
import { type GivingTemplate, type Right, rightsToHold } from './policy/template-rights.ts';
import { type AccessStores, projectExecTemplate, projectPodTemplate } from './stores/access-stores.ts';
import type { TemplateView } from './stores/views.ts';
import { type TemplateSpec, templateState } from './template/template-state.ts';

/** What the webhooks ask before they judge a request; fits the ports of admission. */
export function admissionReads(stores: AccessStores, client: Client, tally: GrantTally) {
  const readers = {
    PodAccessTemplate: templateReader(stores.podTemplates, projectPodTemplate, client),
    ExecAccessTemplate: templateReader(stores.execTemplates, projectExecTemplate, client),
  };
  return {
    templateState: (kind: keyof typeof readers, namespace: string, name: string, signal: AbortSignal) =>
      readers[kind](namespace, name, signal),
    alreadyHolds: (caller: Caller & Extra, namespace: string, template: GivingTemplate, signal: AbortSignal) =>
      alreadyHolds(client, caller, namespace, template, signal),
    limitUses: (account: Account) => tally.uses(account),
    lacking: (caller: Caller & Extra, namespace: string, rights: readonly Right[], signal: AbortSignal) =>
      lackingRights(client, caller, namespace, rights, signal),
  };
}

/** From the store; one live read when it is not there, because the store may lag behind the caller's own write. */
function templateReader<Spec extends TemplateSpec>(
  store: Store<TemplateView<Spec>>,
  project: (object: KubeObject) => TemplateView<Spec> | undefined,
  client: Client,
) {
  return async (namespace: string, name: string, signal: AbortSignal): Promise<TemplateState> => {
    const known = store.get(keyOf({ namespace, name }));
    if (known) return templateState(known);
    try {
      const read = project(await client.get(store.resource, { namespace, name }, { signal }));
      return read ? templateState(read) : { found: false };
    } catch (error) {
      if (isNotFound(error)) return { found: false };
      throw error;
    }
  };
}

interface Extra {
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** May the caller do with the namespace's pods what the template gives anyway? Then its groups do not matter. */
export async function alreadyHolds(
  client: Client,
  caller: Caller & Extra,
  namespace: string,
  template: GivingTemplate,
  signal: AbortSignal,
): Promise<boolean> {
  return (await lackingRights(client, caller, namespace, rightsToHold(template), signal)).length === 0;
}

/** Those of `rights` that the caller does not have in the namespace; all are asked for at once. */
export async function lackingRights(
  client: Client,
  caller: Caller & Extra,
  namespace: string,
  rights: readonly Right[],
  signal: AbortSignal,
): Promise<Right[]> {
  const held = await Promise.all(
    rights.map((right) => client.isAllowed(questionOf(caller, namespace, right), { signal })),
  );
  return rights.filter((_, index) => held[index] !== true);
}

function questionOf({ username, uid, groups, extra }: Caller & Extra, namespace: string, right: Right): AccessQuestion {
  return { user: username, uid, groups, namespace, ...right, ...(extra ? { extra } : {}) };
}
