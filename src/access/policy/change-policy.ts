import type { RequestSpec } from '../../api/access/kinds.ts';
import type { Requester } from '../../api/access/request-spec.ts';
import { quote } from '../../kit/errors.ts';
import { chooseExtension, type Extendable } from './extension-choice.ts';
import { showName } from './names.ts';
import { type Check, type RuleBook, refuse } from './policy.ts';
import type { Caller, TemplateState } from './request-policy.ts';

type Changeable = Pick<RequestSpec, 'templateName' | 'requester' | 'claimed' | 'extensions'>;

export interface ChangeInput {
  readonly caller: Caller;
  readonly oldSpec: Changeable;
  readonly spec: Changeable;
  readonly template: TemplateState;
  /** Before the update. */
  readonly approvalState: string | undefined;
  /** Undefined unless access is open. */
  readonly access: Extendable | undefined;
}

type Change = Pick<ChangeInput, 'oldSpec' | 'spec'>;

export const setsClaimed = ({ oldSpec, spec }: Change): boolean => spec.claimed === true && oldSpec.claimed !== true;

export const addedExtensions = ({ oldSpec, spec }: Change): number =>
  (spec.extensions?.length ?? 0) - (oldSpec.extensions?.length ?? 0);

/** The uids must match: the identity provider may have given the username to another person. */
export const isRequester = (
  { username, uid }: Pick<Caller, 'username' | 'uid'>,
  requester: Pick<Requester, 'username' | 'uid'> | undefined,
): boolean => requester !== undefined && requester.username === username && requester.uid === uid;

const callerIsRequester: Check<ChangeInput> = (input) => {
  const { caller, oldSpec } = input;
  if (!setsClaimed(input) && addedExtensions(input) <= 0) return undefined;
  if (isRequester(caller, oldSpec.requester)) return undefined;
  return refuse(
    'NotRequester',
    `${showName(caller.username)} is not the requester${requesterText(caller, oldSpec.requester)}; create a request of your own`,
    setsClaimed(input) ? 'spec.claimed' : 'spec.extensions',
    403,
  );
};

/** The rest of a clause. Names the uids if the usernames are equal. */
function requesterText({ username, uid }: Caller, requester: Pick<Requester, 'username' | 'uid'> | undefined): string {
  if (!requester) return ', because the request names none';
  if (requester.username === username) {
    return `: the requester has this username with uid ${quote(requester.uid)}, and the caller has uid ${quote(uid)}`;
  }
  return `; only ${showName(requester.username)} can claim or extend the access`;
}

const templateExists: Check<ChangeInput> = (input) => {
  const { template, spec } = input;
  if (template.found || (!setsClaimed(input) && addedExtensions(input) <= 0)) return undefined;
  return refuse(
    'TemplateNotFound',
    `template ${showName(spec.templateName)} of the request does not exist; create a request that names an existing template`,
    'spec.templateName',
    404,
  );
};

const accessCanBeClaimed: Check<ChangeInput> = (input) => {
  const { template, spec, approvalState } = input;
  if (!setsClaimed(input) || !template.found) return undefined;
  if (template.spec.accessConfig.approvals?.claimWithin === undefined) {
    return refuse(
      'WrongState',
      `template ${showName(spec.templateName)} has no approvals.claimWithin, so access opens without a claim; use it when it is open`,
      'spec.claimed',
      422,
    );
  }
  if (approvalState === 'Claimable') return undefined;
  // An earlier claim could start the access while its requester is away.
  return refuse(
    'WrongState',
    `the state of the approval is ${approvalState ?? 'not set yet'}; access can be claimed only while the state is Claimable; ` +
      claimRemedy(approvalState),
    'spec.claimed',
    403,
  );
};

function claimRemedy(approvalState: string | undefined): string {
  if (approvalState === undefined) return 'wait for that state, or create a new request if this one has ended';
  if (approvalState === 'Pending' || approvalState === 'Scheduled') return 'wait for that state';
  const isDenied = approvalState === 'Denied' || approvalState === 'TimedOut';
  return isDenied ? 'create a new request' : 'this request needs no claim';
}

const accessIsOpen: Check<ChangeInput> = (input) => {
  if (addedExtensions(input) <= 0 || input.access) return undefined;
  return refuse(
    'WrongState',
    'the access is not open; an extension can be added only while it is open; wait until it opens, or create a new request if it has ended',
    'spec.extensions',
    403,
  );
};

/** Votes name an extension by its number, so approvers must know the earlier decisions. */
const isOneExtension: Check<ChangeInput> = (input) => {
  const { access, oldSpec } = input;
  const added = addedExtensions(input);
  if (added <= 0 || !access) return undefined;
  if (added > 1) {
    return refuse(
      'WrongState',
      `the update adds ${added} extensions; an update can add one: add the next after the server has decided on the first`,
      'spec.extensions',
      422,
    );
  }
  const asked = oldSpec.extensions?.length ?? 0;
  if (asked <= access.decided) return undefined;
  return refuse(
    'WrongState',
    `extension ${asked} is not decided yet; add the next one after status.extensions shows the decision`,
    'spec.extensions',
    403,
  );
};

const extensionIsAllowed: Check<ChangeInput> = (input) => {
  const { access, template, spec } = input;
  const asked = spec.extensions?.at(-1);
  if (addedExtensions(input) <= 0 || !access || !template.found || !asked) return undefined;
  const chosen = chooseExtension(asked, template.spec.accessConfig.extension, access);
  return 'code' in chosen ? chosen : undefined;
};

/**
 * For claims and extensions, at admission. A policy certifies who made them.
 */
export const changePolicy: RuleBook<ChangeInput> = {
  'same-person': {
    requirement: 'only the requester claims or extends the access',
    check: callerIsRequester,
    remedy: () => 'ask the requester',
  },
  template: {
    requirement: 'the template exists',
    check: templateExists,
    remedy: () => 'create a request that names an existing template',
  },
  claimable: {
    requirement: 'spec.claimed is set only while the request waits for its claim',
    check: accessCanBeClaimed,
    remedy: () => 'set spec.claimed while status.approval.state is Claimable',
  },
  open: {
    requirement: 'an extension is added only while access is open',
    check: accessIsOpen,
    remedy: () => 'wait until access opens, or create a new request if it has ended',
  },
  'one-extension': {
    requirement: 'an extension is added only after the one before was decided',
    check: isOneExtension,
    remedy: () => 'wait until the last extension is decided',
  },
  extension: {
    requirement: 'the template allows the extension',
    check: extensionIsAllowed,
    remedy: (input) =>
      extensionIsAllowed(input)?.code === 'InvalidDuration'
        ? 'write a Go duration from 1s up, such as 30m, in by'
        : 'create a new request',
  },
};
