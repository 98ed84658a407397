/** The options that make the Program of a file. */
import {
  type GivenOptions,
  type LoweringName,
  loweringNames,
  type RecordingName,
  recordingNames,
  type ScheduleName,
  scheduleNames,
} from "../../compile/options.ts";

export const compileNames: readonly CompileName[] = [...loweringNames, ...recordingNames, ...scheduleNames];
type CompileName = LoweringName | RecordingName | ScheduleName;

/** The options that the command line gives, without defaults. They restrict the choice of a schedule. */
export type CompileGiven = GivenOptions<CompileName>;
