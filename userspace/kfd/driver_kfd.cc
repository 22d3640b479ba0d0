// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "kfd/driver_kfd.h"

namespace kfd {

base::Result<Abi> DriverKfd::choose_abi(int fd) {
  ASSIGN_OR_RETURN(const bool is_extensible, ExtensibleKfd::probe(fd));
  abi_ = is_extensible ? Abi::kExtensible : Abi::kReleased;
  return Abi{abi_};
}

}  // namespace kfd
