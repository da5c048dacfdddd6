import { accessVotes } from '../../api/access/access-vote.ts';
import { apiVersionOf, type KubeObject } from '../../api/object.ts';
import { ApiError, codeOf, isForbidden, isWebhookDenial } from '../../kube/errors.ts';
import {
  findRequest,
  findRequestOrNames,
  requesterOf,
  requestWithFlags,
  type TypedObject,
} from '../access-requests.ts';
import { usageProblem } from '../args.ts';
import { awaitedDecision } from '../choices.ts';
import type { ClusterConnection } from '../cluster-connection.ts';
import type { Command, Context } from '../command.ts';
import { exits, type FlagSpec, requestArgument } from '../command-spec.ts';
import { forEach, type Outcome } from '../for-each.ts';
import { outputForm } from '../output.ts';
import { Problem } from '../problem.ts';
import { cannotOpen, specOf, stateOf, statusOf, unreadinessOf } from '../request-state.ts';
import { votedTemplate } from '../voted-template.ts';
import { endedProblem } from '../wait.ts';
import { closingText } from './revoke.ts';

const reasonFlag: FlagSpec = { name: 'reason', value: 'TEXT', help: 'Why, for the requester and the audit.' };
const uidFlag: FlagSpec = {
  name: 'uid',
  value: 'UID',
  help: 'The uid of the request that you saw: it fails for another request of the same name.',
};
const aboutFlag: FlagSpec = {
  name: 'about',
  value: 'WHAT',
  help: 'Access, Extension-1 for the first extension, or Review of an emergency, also if its request was deleted. Required while emergency access is open. Default: what the request waits for, otherwise Access.',
  complete: ['Access', 'Extension-1', 'Review'],
};

export const approve: Command = {
  name: 'approve',
  summary: 'Approve a request, an extension, or the review of an emergency',
  details:
    'An approval of access or of an extension counts for one version of the template: that of --template-version, by default the current one. If the template was changed after the creation of the request (in whole seconds), the flag is required. A vote cannot be changed; to undo an approval, deny the request.',
  args: [{ ...requestArgument, repeated: true }],
  flags: [
    { name: 'max', value: 'DURATION', help: 'The longest duration that you approve.' },
    {
      name: 'template-version',
      value: 'VERSION',
      help: 'The version of the template that you saw, as show prints it.',
    },
    reasonFlag,
    aboutFlag,
    uidFlag,
    { name: 'on-behalf-of', value: 'NAME', help: 'For programs: the person who decided. Shown, not checked.' },
  ],
  examples: ["approve payments-shell-x7k2p --max 20m --reason 'ticket checked'"],
  run: (context) => vote(context, 'Approve'),
};

export const deny: Command = {
  name: 'deny',
  summary: 'Deny a request, an extension, or the review of an emergency',
  details:
    'A denial is final. It also ends open access. While an extension waits, deny refuses only the extension; to end the access, add --about Access. While emergency access is open, add --about Review to complete its review and end the access, or --about Access to end only the access.',
  args: [{ ...requestArgument, repeated: true }],
  flags: [reasonFlag, aboutFlag, uidFlag],
  examples: ["deny payments-shell-x7k2p --reason 'use the staging cluster'"],
  run: (context) => vote(context, 'Deny'),
};

async function vote(context: Context, decision: 'Approve' | 'Deny'): Promise<number> {
  const { args, connect } = context;
  // Before the first call. The vote contains the text, not the milliseconds.
  args.durationMs('max');
  const form = outputForm(args);
  const connection = await connect();
  return forEach(context, form, args.positionals, async (text) => {
    if (args.text('about') === 'Review') return review(context, connection, text, decision);
    const found = await findRequest(connection, text, 'pending');
    const about = args.text('about') ?? awaitedDecision(found.object) ?? 'Access';
    if (about === 'Review') {
      if (!cannotOpen(stateOf(found.object).state)) throw openEmergencyProblem(connection, found, decision);
    } else if (cannotOpen(stateOf(found.object).state)) throw endedProblem(found.object);
    const approves = decision === 'Approve' && about !== 'Review';
    const seen = args.text('template-version');
    const template = approves
      ? await votedTemplate(connection, found, seen).catch(async (error: unknown) => {
          throw (await ownRequestProblem(connection, found)) ?? error;
        })
      : undefined;
    const object = await createVote(context, connection, found, { about, decision, template });
    const unready = template && about === 'Access' ? unreadinessOf(template) : '';
    if (unready !== '') context.io.printError(`note: template ${template?.metadata.name} is not ready: ${unready}\n`);
    return { object, subject: found.object, result: decidedText(found.object, about, decision) };
  });
}

/** There is only one review, so a vote on open access names what it is about. */
function openEmergencyProblem(connection: ClusterConnection, { type, object }: TypedObject, decision: string): Problem {
  const { name } = object.metadata;
  const command = (verb: string, about: string): string =>
    `${connection.program} ${verb} ${requestWithFlags(connection, type, name)} --about ${about}`;
  return usageProblem(
    `the emergency access ${name} is still open, and is reviewed only once; to review it now: ${command(decision.toLowerCase(), 'Review')}; to end only the access: ${command('deny', 'Access')}`,
  );
}

/** The request may be deleted: the server then finds the owed review by kind and name. */
async function review(
  context: Context,
  connection: ClusterConnection,
  text: string,
  decision: 'Approve' | 'Deny',
): Promise<Outcome> {
  const candidates = await findRequestOrNames(connection, text);
  const problems: unknown[] = [];
  for (const found of candidates) {
    try {
      const object = await createVote(context, connection, found, { about: 'Review', decision });
      return { object, subject: found.object, result: decidedText(found.object, 'Review', decision) };
    } catch (error) {
      problems.push(error);
      if (!isMissingRequest(error)) break;
    }
  }
  throw problems.find((error) => !isMissingRequest(error)) ?? problems[0];
}

const isMissingRequest = (error: unknown): boolean => codeOf(error) === 'RequestNotFound';

interface NewVote {
  readonly about: string;
  readonly decision: 'Approve' | 'Deny';
  /** Whose version an approval names. */
  readonly template?: KubeObject | undefined;
}

async function createVote(
  context: Context,
  connection: ClusterConnection,
  found: TypedObject,
  { about, decision, template }: NewVote,
): Promise<KubeObject> {
  const { uid, name } = found.object.metadata;
  const seen = context.args.text('uid');
  // A deleted request has none: the server finds its review by the name.
  if (seen !== undefined && uid !== undefined && seen !== uid)
    throw new Problem(exits.failed, `${name} is now another request (uid ${uid}); look at it before you decide`);
  const manifest = voteManifest(found, context.args, decision, about, template);
  return connection.cluster.client.create(accessVotes, manifest).catch(async (error: unknown) => {
    throw (await voteProblem(connection, found, about, decision, error)) ?? error;
  });
}

/** Undefined if the message of `error` suffices. */
async function voteProblem(
  connection: ClusterConnection,
  { type, object }: TypedObject,
  about: string,
  decision: 'Approve' | 'Deny',
  error: unknown,
): Promise<Problem | undefined> {
  const { name } = object.metadata;
  const see = `${connection.program} get ${requestWithFlags(connection, type, name)}`;
  // The name of a vote follows from its content, so a repeated vote has the same name.
  if (error instanceof ApiError && error.code === 409)
    return new Problem(
      exits.failed,
      `you have ${decision === 'Approve' ? 'approved' : 'denied'} this already (${about} of ${name}), and you cannot ${decision.toLowerCase()} it again, even if your groups have changed; to see the votes: ${see}`,
    );
  // Without the permission to create votes, RBAC denies a vote on one's own request first, and a
  // permission would not help.
  if (!isForbidden(error) || isWebhookDenial(error)) return undefined;
  return ownRequestProblem(connection, { type, object });
}

async function ownRequestProblem(
  { program, where, whoAmI }: ClusterConnection,
  { type, object }: TypedObject,
): Promise<Problem | undefined> {
  const user = await whoAmI().catch(() => undefined);
  if (!user || user.username !== requesterOf(object)) return undefined;
  return new Problem(
    exits.denied,
    `denied: ${object.metadata.name} is your own request, which only others can decide; to see who: ${program} approvers ${type}/${specOf(object).templateName} ${where}`,
  );
}

/** As the client knows it. The server counts the vote later. */
function decidedText(request: KubeObject, about: string, decision: 'Approve' | 'Deny'): string {
  const decided = `${about === 'Access' ? '' : `${about} `}${decision === 'Approve' ? 'approved' : 'denied'}`;
  const isOpen = stateOf(request).state === 'Open';
  if (decision === 'Deny' && !about.startsWith('Extension-') && isOpen) return `${decided}; ${closingText(request)}`;
  const { all = [] } = statusOf(request).approval ?? {};
  const left = all.reduce((sum, { have, need }) => sum + Math.max(0, need - have), 0) - 1;
  if (decision === 'Deny' || about !== 'Access') return decided;
  const { startAt } = specOf(request);
  if (left <= 0) return startAt === undefined ? decided : `${decided}; it asks for access from ${startAt}`;
  return `${decided}; it needs at least ${left} more ${left === 1 ? 'approval' : 'approvals'}`;
}

function voteManifest(
  { object }: TypedObject,
  args: Context['args'],
  decision: string,
  about: string,
  template: KubeObject | undefined,
): KubeObject {
  const { name, uid, namespace } = object.metadata;
  const [max, why, onBehalfOf] = [args.text('max'), args.text('reason'), args.text('on-behalf-of')];
  return {
    apiVersion: apiVersionOf(accessVotes),
    kind: accessVotes.kind,
    metadata: { generateName: 'vote-', namespace } as KubeObject['metadata'],
    spec: {
      request: { kind: object.kind, name, ...(uid === undefined ? {} : { uid }) },
      ...(template === undefined ? {} : { template: templateReference(template) }),
      about,
      decision,
      ...(max === undefined ? {} : { max }),
      ...(why === undefined ? {} : { reason: why }),
      ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
    },
  };
}

const templateReference = ({ kind, metadata: { name, uid, generation } }: KubeObject): object => ({
  kind,
  name,
  uid,
  generation,
});
