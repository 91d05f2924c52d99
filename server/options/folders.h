// The flags that give the server a directory.
#ifndef QUANTD_SERVER_OPTIONS_FOLDERS_H_
#define QUANTD_SERVER_OPTIONS_FOLDERS_H_

#include "server/memory/shares.h"
#include "server/options/options.h"

namespace quantd::server {

void FillFolders(Options& options, memory::Wanted& wanted);

}  // namespace quantd::server

#endif  // QUANTD_SERVER_OPTIONS_FOLDERS_H_
