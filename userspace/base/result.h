// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Errors as values. Expected<T, E> holds a T or an E; Result<T> is Expected<T, Error>, where Error is an
// errno plus a chain of context, outermost first. g++ 12 with -std=c++20 has no std::expected, hence this file.
// Not here: logging, which happens once, at a program's boundary.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace base {

// What went wrong, for a person (message) and for a caller (code, a positive errno).
class Error {
 public:
  Error(int code, std::string message) : code_(code), message_(std::move(message)) {}

  // "WHAT: strerror(code)"
  static Error from_errno(int code, std::string_view what) { return Error(code, std::strerror(code)).wrap(what); }

  [[nodiscard]] int code() const { return code_; }
  [[nodiscard]] const std::string& message() const { return message_; }

  // This error as the caller one level further out sees it: "context: message".
  [[nodiscard]] Error wrap(std::string_view context) && {
    message_.insert(0, ": ");
    message_.insert(0, context);
    return std::move(*this);
  }

 private:
  int code_;
  std::string message_;
};

// Carries an error into any Expected; what TRY returns.
template <typename E>
struct Unexpected {
  E error;
};
template <typename E>
Unexpected(E) -> Unexpected<E>;

template <typename T, typename E>
class [[nodiscard]] Expected {
 public:
  using value_type = T;
  using error_type = E;

  Expected(T value) : storage_(std::in_place_index<0>, std::move(value)) {}
  Expected(Unexpected<E> failure) : storage_(std::in_place_index<1>, std::move(failure.error)) {}
  Expected(E error) : storage_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const { return storage_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Precondition: ok().
  [[nodiscard]] T& value() & { return *std::get_if<0>(&storage_); }
  [[nodiscard]] const T& value() const& { return *std::get_if<0>(&storage_); }
  [[nodiscard]] T&& value() && { return std::move(*std::get_if<0>(&storage_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return std::get_if<0>(&storage_); }
  const T* operator->() const { return std::get_if<0>(&storage_); }

  // Precondition: !ok().
  [[nodiscard]] E& error() & { return *std::get_if<1>(&storage_); }
  [[nodiscard]] const E& error() const& { return *std::get_if<1>(&storage_); }
  [[nodiscard]] E&& error() && { return std::move(*std::get_if<1>(&storage_)); }

 private:
  std::variant<T, E> storage_;
};

template <typename E>
class [[nodiscard]] Expected<void, E> {
 public:
  using value_type = void;
  using error_type = E;

  Expected() = default;
  Expected(Unexpected<E> failure) : error_(std::move(failure.error)) {}
  Expected(E error) : error_(std::move(error)) {}

  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] E& error() & { return *error_; }
  [[nodiscard]] const E& error() const& { return *error_; }
  [[nodiscard]] E&& error() && { return std::move(*error_); }

 private:
  std::optional<E> error_;
};

template <typename T>
using Result = Expected<T, Error>;
using Status = Result<void>;

}  // namespace base

#define BASE_CONCAT_(a, b) a##b
#define BASE_CONCAT(a, b) BASE_CONCAT_(a, b)

// Leaves the enclosing function with EXPR's error, if it has one. EXPR's and the function's error types agree.
#define TRY(expr)                                                                                             \
  do {                                                                                                        \
    if (auto try_result = (expr); !try_result.ok()) return ::base::Unexpected{std::move(try_result).error()}; \
  } while (false)

// ASSIGN_OR_RETURN(auto x, f()): declares x with f()'s value, or leaves with its error.
#define ASSIGN_OR_RETURN(decl, expr) ASSIGN_OR_RETURN_(BASE_CONCAT(assign_result_, __LINE__), decl, expr)
#define ASSIGN_OR_RETURN_(tmp, decl, expr)                          \
  auto tmp = (expr);                                                \
  if (!tmp.ok()) return ::base::Unexpected{std::move(tmp).error()}; \
  decl = std::move(tmp).value()
