import type { Command } from './command.ts';
import { approvers } from './commands/approvers.ts';
import { auditReport, auditVerify } from './commands/audit.ts';
import { check } from './commands/check.ts';
import { explainCode, helpCodes } from './commands/codes.ts';
import { completion } from './commands/completion.ts';
import { openConsole } from './commands/console.ts';
import { approve, deny } from './commands/decide.ts';
import { doctor } from './commands/doctor.ts';
import { explain } from './commands/explain.ts';
import { bindingStatus, inventoryStatus, inventoryWhy } from './commands/inventory.ts';
import { list } from './commands/list.ts';
import { notifyTest } from './commands/notify.ts';
import { claim, exec, extend, get, watch } from './commands/one-request.ts';
import { pending } from './commands/pending.ts';
import { requestExec, requestPod } from './commands/request.ts';
import { revoke } from './commands/revoke.ts';
import { sessionsKill, sessionsList, sessionsPlay, sessionsTail } from './commands/sessions.ts';
import { show } from './commands/show.ts';
import { templates } from './commands/templates.ts';
import { templatesNew } from './commands/templates-new.ts';
import { use } from './commands/use.ts';
import { version } from './commands/version.ts';
import { who } from './commands/who.ts';

/** In the order of help. */
export const commands: readonly Command[] = [
  templates,
  templatesNew,
  requestPod,
  requestExec,
  list,
  get,
  watch,
  exec,
  use,
  claim,
  extend,
  revoke,
  pending,
  show,
  approve,
  deny,
  explain,
  check,
  who,
  approvers,
  auditVerify,
  auditReport,
  sessionsList,
  sessionsTail,
  sessionsPlay,
  sessionsKill,
  openConsole,
  notifyTest,
  bindingStatus,
  inventoryStatus,
  inventoryWhy,
  doctor,
  explainCode,
  helpCodes,
  completion,
  version,
];
