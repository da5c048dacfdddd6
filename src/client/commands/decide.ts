import { accessVotes } from '../../api/access/access-vote.ts';
import { apiVersionOf, type KubeObject } from '../../api/object.ts';
import { ApiError, isForbidden, isNotFound } from '../../kube/errors.ts';
import { type Found, findRequest, requesterOf, requestResource, typeNames } from '../access-requests.ts';
import { usage } from '../args.ts';
import { questionOf } from '../choices.ts';
import { type ClusterConnection, searchedText } from '../cluster-connection.ts';
import type { Command, Context } from '../command.ts';
import { exits, type FlagSpec } from '../command-spec.ts';
import { forEach } from '../for-each.ts';
import { outputForm } from '../output.ts';
import { Problem } from '../problem.ts';
import { cannotOpen, type State, specOf, stateOf, statusOf } from '../request-state.ts';
import { requestsTarget } from '../targets.ts';
import { votedTemplate } from '../voted-template.ts';
import { endedProblem, targetOf } from '../wait.ts';
import { endRequest } from './one-request.ts';

const reason: FlagSpec = { name: 'reason', value: 'TEXT', help: 'Why, for the requester and the audit.' };
const about: FlagSpec = {
  name: 'about',
  value: 'WHAT',
  help: 'Access, Extension-1 for the first extension, or Review of an emergency. Default: what the request waits for.',
  complete: ['Access', 'Extension-1', 'Review'],
};

export const approve: Command = {
  name: 'approve',
  summary: 'Approve a request, an extension, or the review of an emergency',
  details:
    'Your vote counts for this request, and for one version of its template: that of --template-version, which show prints, else the present one. If the template was changed after the request was created, the version is required. A vote cannot be changed; deny takes an approval back.',
  args: [{ ...requestsTarget, repeated: true }],
  flags: [
    { name: 'max', value: 'DURATION', help: 'The longest duration that you approve.' },
    {
      name: 'template-version',
      value: 'VERSION',
      help: 'The version of the template that you saw, as show prints it.',
    },
    reason,
    about,
    { name: 'on-behalf-of', value: 'NAME', help: 'For programs: the person who decided. Shown, not checked.' },
  ],
  examples: ["approve payments-shell-x7k2p --max 20m --reason 'ticket checked'"],
  run: (context) => vote(context, 'Approve'),
};

export const deny: Command = {
  name: 'deny',
  summary: 'Deny a request or an extension; open access ends',
  details: 'A denial is final, and ends access that is already open.',
  args: [{ ...requestsTarget, repeated: true }],
  flags: [reason, about],
  examples: ["deny payments-shell-x7k2p --reason 'use the staging cluster'"],
  run: (context) => vote(context, 'Deny'),
};

async function vote(context: Context, decision: 'Approve' | 'Deny'): Promise<number> {
  const { args, connect } = context;
  args.durationMs('max');
  const form = outputForm(args);
  const connection = await connect();
  return forEach(context, form, args.positionals, async (text) => {
    const found = await findRequest(connection, text);
    const question = args.text('about') ?? questionOf(found.object) ?? 'Access';
    if (question !== 'Review' && cannotOpen(stateOf(found.object).state)) throw endedProblem(found.object);
    const { state } = stateOf(found.object);
    if (decision === 'Approve' && args.text('about') === undefined && isOpen(state) && !questionOf(found.object))
      throw new Problem(exits.denied, `${found.object.metadata.name} waits for no approval: its state is ${state}`);
    const approves = decision === 'Approve' && question !== 'Review';
    const template = approves ? await votedTemplate(connection, found, args.text('template-version')) : undefined;
    const manifest = voteFor(found, args, decision, question, template);
    const object = await connection.cluster.client.create(accessVotes, manifest).catch(async (error: unknown) => {
      throw (await notVoted(context, connection, found, question, decision, error)) ?? error;
    });
    return { object, of: found.object, became: decidedText(found.object, question, decision) };
  });
}

const isOpen = (state: State): boolean => state === 'Opening' || state === 'Ready';

/** The Problem for a vote that the API server did not create; undefined if its own message says what to do. */
async function notVoted(
  { io }: Context,
  connection: ClusterConnection,
  { type, object }: Found,
  question: string,
  decision: 'Approve' | 'Deny',
  error: unknown,
): Promise<Problem | undefined> {
  const target = targetOf(connection, type, object.metadata.name);
  // The name of a vote comes from its voter, its request, and its content.
  if (error instanceof ApiError && error.code === 409) {
    return new Problem(
      exits.failed,
      `you have ${decision === 'Approve' ? 'approved' : 'denied'} this already (${question} of ${object.metadata.name}), and a vote counts once, with the groups that you had then; to see the votes: ${io.program} get ${target}`,
    );
  }
  // The denial of the webhook says what to do. RBAC denies first a requester who may not vote at all.
  if (!isForbidden(error) || (error instanceof ApiError && error.message.includes(' denied the request: ')))
    return undefined;
  const user = await connection.whoAmI().catch(() => undefined);
  if (!user || user.username !== requesterOf(object)) return undefined;
  const template = [specOf(object).templateName ?? '', '-n', connection.namespace, ...connection.kubectlFlags].join(
    ' ',
  );
  return new Problem(
    exits.denied,
    `denied: ${object.metadata.name} is your own request, which only others can decide; to see who: ${io.program} approvers ${template}; to withdraw it: ${io.program} drop ${target}`,
  );
}

/** What the vote decided, as far as the client knows: the server counts the vote later. */
function decidedText(request: KubeObject, question: string, decision: 'Approve' | 'Deny'): string {
  const decided = `${question === 'Access' ? '' : `${question} `}${decision === 'Approve' ? 'approved' : 'denied'}`;
  const { all = [] } = statusOf(request).approval ?? {};
  const left = all.reduce((sum, { have, need }) => sum + Math.max(0, need - have), 0) - 1;
  if (decision === 'Deny' || question !== 'Access' || left <= 0) return decided;
  return `${decided}; it needs at least ${left} more ${left === 1 ? 'approval' : 'approvals'}`;
}

function voteFor(
  { object }: Found,
  args: Context['args'],
  decision: string,
  question: string,
  template: KubeObject | undefined,
): KubeObject {
  const { name, uid, namespace } = object.metadata;
  const [max, why, onBehalfOf] = [args.text('max'), args.text('reason'), args.text('on-behalf-of')];
  return {
    apiVersion: apiVersionOf(accessVotes),
    kind: accessVotes.kind,
    metadata: { generateName: 'vote-', namespace } as KubeObject['metadata'],
    spec: {
      request: { kind: object.kind, name, uid },
      ...(template === undefined ? {} : { template: versionIn(template) }),
      about: question,
      decision,
      ...(max === undefined ? {} : { max }),
      ...(why === undefined ? {} : { reason: why }),
      ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
    },
  };
}

const versionIn = ({ kind, metadata: { name, uid, generation } }: KubeObject): object => ({
  kind,
  name,
  uid,
  generation,
});

export const revoke: Command = {
  name: 'revoke',
  summary: 'End access of others, or all access of a user',
  details:
    'Needs the permission to patch requests. With --user, ends every request of the user in the namespace, or with -A in all namespaces. The server then closes the access; until then, drawbridge who lists it as Ending.',
  args: [{ ...requestsTarget, optional: true, repeated: true }],
  flags: [reason, { name: 'user', value: 'NAME', help: 'Every open or waiting request of this user.' }],
  examples: ["revoke payments-shell-x7k2p --reason 'incident closed'", 'revoke --user alice -A'],
  async run(context) {
    const { args, io, connect } = context;
    const form = outputForm(args);
    const [user, why] = [args.text('user'), args.text('reason')];
    if ((user === undefined) === (args.positionals.length === 0))
      throw usage('give the names of requests, or --user NAME', 'revoke');
    if (user === '') throw usage('--user must not be empty', 'revoke');
    const connection = await connect();
    const where = ({ object }: Found): string => (args.has('all-namespaces') ? ` in ${object.metadata.namespace}` : '');
    const end = async (found: Found) => ({
      object: await endRequest(connection, found, why),
      became: `revocation requested${where(found)}; the server closes the access`,
    });
    if (user === undefined)
      return forEach(context, form, args.positionals, async (name) => end(await findRequest(connection, name)));
    const found = await requestsOf(connection, user);
    if (found.length === 0) io.printError(`no open or waiting request of ${user} ${searchedText(connection)}\n`);
    return forEach(context, form, found, (one) =>
      end(one).catch((error: unknown) => {
        // If the request ended meanwhile, there is nothing left to revoke.
        if (isNotFound(error)) return undefined;
        throw error;
      }),
    );
  },
};

/** The requests of a user that have not ended. */
async function requestsOf({ cluster, scope }: ClusterConnection, user: string): Promise<Found[]> {
  const lists = await Promise.all(
    typeNames.map(async (type) => {
      const { items } = await cluster.client.list(requestResource(type), scope);
      return items
        .filter((item) => requesterOf(item) === user && !cannotOpen(stateOf(item).state))
        .map((object) => ({ type, object }));
    }),
  );
  return lists.flat();
}
