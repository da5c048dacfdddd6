import type { KubeObject, Resource } from '../../api/object.ts';
import { clusterRoleBindings, clusterRoles, roleBindings, roles } from '../../api/resources.ts';
import { findObject } from '../../kube/client.ts';
import { ApiError, isForbidden } from '../../kube/errors.ts';
import { uncovered } from '../../rbac/rule-cover.ts';
import { findTemplate, type TypedObject, templateResource } from '../access-requests.ts';
import { approversText, counts, missingBindingText, templateSpecOf } from '../approver-text.ts';
import type { ClusterConnection } from '../cluster-connection.ts';
import type { Command, Context } from '../command.ts';
import { exits } from '../command-spec.ts';
import { outputForm, type Presentation, Printer } from '../output.ts';
import { plainMessage } from '../problem.ts';
import { roleOf, rulesIn, subjectsIn } from '../rbac-view.ts';

/** A holder of the verb approve. `countsFor`: entries for which its votes can count. */
interface Approver {
  readonly kind: string;
  readonly name: string;
  readonly by: string;
  readonly countsFor: string;
}

export const approvers: Command = {
  name: 'approvers',
  summary: 'Show who can approve requests through a template',
  details:
    'Lists the users, groups, and ServiceAccounts that hold the verb approve on the template by a RoleBinding or ClusterRoleBinding. If none of the groups and ServiceAccounts can vote for an entry of approvals.all, prints the command that binds its groups. A user is enough only for an entry without groups, because the server learns the groups of users when they vote. If you may not read all bindings and roles, prints what you may not read, and whom to ask.',
  args: [{ name: 'TEMPLATE', complete: 'templates' }],
  examples: ['approvers payments-shell'],
  async run({ args, io, connect }: Context) {
    const form = outputForm(args);
    const connection = await connect();
    const template = await findTemplate(connection, args.positionals[0] ?? '');
    const needed = approversText(template.object);
    io.printError(needed === '' ? 'the template requires no approvals\n' : `needed: ${needed}\n`);
    const unread: Unread = { forbidden: new Set(), failures: new Set() };
    const printer = new Printer(io, form, approverTable);
    const holders = await holdersOf(connection, template, unread);
    printer.add(holders);
    printer.end();
    // Without approvals, no entry can lack a holder.
    if (needed === '') return exits.done;
    for (const failure of unread.failures) io.printError(`not checked: ${failure}\n`);
    if (unread.forbidden.size > 0) io.printError(`${forbiddenText(unread.forbidden, template.object, holders)}\n`);
    const isComplete = unread.failures.size === 0 && unread.forbidden.size === 0;
    const kubectlFlags = ['-n', connection.namespace, ...connection.kubectlFlags];
    const missing = isComplete ? missingBindingText(template.object, holders, kubectlFlags) : '';
    if (missing !== '') io.printError(`${missing}\n`);
    return exits.done;
  },
};

interface Unread {
  /** Such as `the ClusterRoleBindings`. */
  readonly forbidden: Set<string>;
  readonly failures: Set<string>;
}

/** That the user may not read who can approve, and whom to ask. */
function forbiddenText(forbidden: ReadonlySet<string>, template: KubeObject, holders: readonly Approver[]): string {
  const all = templateSpecOf(template).accessConfig?.approvals?.all ?? [];
  const ask = `ask ${all.some(({ groups = [] }) => groups.length > 0) ? 'a member of the groups above, or ' : ''}an administrator`;
  const who = holders.length === 0 ? 'who can approve' : 'who else can approve';
  return `not checked: ${who}, because you may not read ${[...forbidden].join(' or ')}; ${ask}`;
}

/** Adds to `unread` what could not be read. */
async function holdersOf(connection: ClusterConnection, template: TypedObject, unread: Unread): Promise<Approver[]> {
  const { cluster, namespace } = connection;
  const read = async <T>(what: string, reading: Promise<T>, fallback: T): Promise<T> => {
    try {
      return await reading;
    } catch (error) {
      if (error instanceof ApiError && isForbidden(error)) unread.forbidden.add(what);
      else unread.failures.add(plainMessage(error));
      return fallback;
    }
  };
  const list = async (what: string, resource: Resource, scope: object): Promise<KubeObject[]> =>
    (await read(what, cluster.client.list(resource, scope), { items: [], resourceVersion: '' })).items;
  const bindings = [
    ...(await list(`the RoleBindings of namespace ${namespace}`, roleBindings, { namespace })),
    ...(await list('the ClusterRoleBindings', clusterRoleBindings, {})),
  ];
  const mayApproveByRole = new Map<string, Promise<boolean>>();
  const found: Approver[] = [];
  for (const binding of bindings) {
    const { kind, name } = roleOf(binding);
    const key = `${kind} ${name}`;
    const resource = kind === 'Role' ? roles : clusterRoles;
    const target = kind === 'Role' ? { namespace, name } : { name };
    const answer =
      mayApproveByRole.get(key) ??
      read(`the ${kind} ${name}`, findObject(cluster.client, resource, target, {}), undefined).then((role) =>
        mayApprove(role, template),
      );
    mayApproveByRole.set(key, answer);
    if (await answer) found.push(...subjectsOf(binding, template));
  }
  return found;
}

function mayApprove(role: KubeObject | undefined, { type, object }: TypedObject): boolean {
  const { group, plural } = templateResource(type);
  const { name } = object.metadata;
  const wanted = { apiGroups: [group], resources: [plural], resourceNames: [name] as [string], verbs: ['approve'] };
  return uncovered(rulesIn(role), [wanted]).length === 0;
}

function subjectsOf(binding: KubeObject, { object }: TypedObject): Approver[] {
  const all = templateSpecOf(object).accessConfig?.approvals?.all ?? [];
  return subjectsIn(binding).map((subject) => {
    const entries = all.filter((entry) => counts(subject, entry, object)).map(({ name }) => name);
    const countsFor = subject.kind === 'User' ? 'as their groups allow' : entries.join(', ') || 'nothing';
    return { ...subject, by: `${binding.kind} ${binding.metadata.name}`, countsFor };
  });
}

const approverTable: Presentation<Approver> = {
  columns: [
    { title: 'KIND', text: ({ kind }) => kind },
    { title: 'NAME', text: ({ name }) => name },
    { title: 'COUNTS FOR', text: ({ countsFor }) => countsFor },
    { title: 'BY', text: ({ by }) => by },
  ],
  object: (approver) => approver,
  name: ({ name }) => name,
};
